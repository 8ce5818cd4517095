// tests/expr/random_expression_3_test.cpp: part 3 of the random expressions, compiled by itself.
#include "random_expression.hpp"

void random_expression::append_part_3(std::vector<entry>& entries) { append_entries<3>(entries); }

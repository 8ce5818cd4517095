// tests/expr/random_expression_2_test.cpp: part 2 of the random expressions, compiled by itself.
#include "random_expression.hpp"

void random_expression::append_part_2(std::vector<entry>& entries) { append_entries<2>(entries); }

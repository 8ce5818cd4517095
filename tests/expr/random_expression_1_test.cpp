// tests/expr/random_expression_1_test.cpp: part 1 of the random expressions, compiled by itself.
#include "random_expression.hpp"

void random_expression::append_part_1(std::vector<entry>& entries) { append_entries<1>(entries); }

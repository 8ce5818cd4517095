// tests/ops/table_1_test.cpp: part 1 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_1(std::vector<row>& rows) { append_rows<1>(rows); }

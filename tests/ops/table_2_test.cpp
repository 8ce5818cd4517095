// tests/ops/table_2_test.cpp: part 2 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_2(std::vector<row>& rows) { append_rows<2>(rows); }

// tests/ops/table_4_test.cpp: part 4 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_4(std::vector<row>& rows) { append_rows<4>(rows); }

// tests/ops/table_8_test.cpp: part 8 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_8(std::vector<row>& rows) { append_rows<8>(rows); }

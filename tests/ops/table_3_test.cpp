// tests/ops/table_3_test.cpp: part 3 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_3(std::vector<row>& rows) { append_rows<3>(rows); }

// tests/ops/table_5_test.cpp: part 5 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_5(std::vector<row>& rows) { append_rows<5>(rows); }

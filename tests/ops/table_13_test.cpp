// tests/ops/table_13_test.cpp: part 13 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_13(std::vector<row>& rows) { append_rows<13>(rows); }

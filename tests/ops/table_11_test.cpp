// tests/ops/table_11_test.cpp: part 11 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_11(std::vector<row>& rows) { append_rows<11>(rows); }

// tests/ops/table_7_test.cpp: part 7 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_7(std::vector<row>& rows) { append_rows<7>(rows); }

// tests/ops/table_10_test.cpp: part 10 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_10(std::vector<row>& rows) { append_rows<10>(rows); }

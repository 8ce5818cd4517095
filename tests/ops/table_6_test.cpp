// tests/ops/table_6_test.cpp: part 6 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_6(std::vector<row>& rows) { append_rows<6>(rows); }

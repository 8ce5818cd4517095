// tests/ops/table_9_test.cpp: part 9 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_9(std::vector<row>& rows) { append_rows<9>(rows); }

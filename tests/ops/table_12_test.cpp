// tests/ops/table_12_test.cpp: part 12 of the op table, compiled by itself.
#include "table.hpp"

void op_table::append_part_12(std::vector<row>& rows) { append_rows<12>(rows); }

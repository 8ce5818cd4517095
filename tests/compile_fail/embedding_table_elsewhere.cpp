// tests/compile_fail/embedding_table_elsewhere.cpp: embedding() of ids on one device and a table on another.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0> ?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<std::int64_t, 2> ids, variable<float, 2, numa<0>> table) { embedding(ids, table); }
#else
void f(tensor<std::int64_t, 2, numa<0>> ids, variable<float, 2, numa<0>> table) { embedding(ids, table); }
#endif

// tests/compile_fail/index_select_index_elsewhere.cpp: index_select() with the index on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto rows(tensor<float, 2, numa<0>> x, tensor<std::int64_t, 1, numa<1>> i) { return index_select(x, 0, i); }
#else
auto rows(tensor<float, 2, numa<0>> x, tensor<std::int64_t, 1, numa<0>> i) { return index_select(x, 0, i); }
#endif

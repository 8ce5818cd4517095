// tests/compile_fail/gather_index_elsewhere.cpp: gather() with the index on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto pick(tensor<float, 2> x, tensor<std::int64_t, 2, cuda<0>> i) { return gather(x, 1, i); }
#else
auto pick(tensor<float, 2> x, tensor<std::int64_t, 2> i) { return gather(x, 1, i); }
#endif

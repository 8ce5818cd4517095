// tests/compile_fail/dataset_targets_elsewhere.cpp: inputs and targets of a data set on two devices.
// EXPECT: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<1>\s?>
// EXPECT: copy_one_operand_with_dot_to
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2> x, tensor<int, 1, numa<1>> y) { return tensor_dataset(x, y); }
#else
auto f(tensor<float, 2> x, tensor<int, 1, numa<1>> y) { return tensor_dataset(x, y.to<cpu>()); }
#endif

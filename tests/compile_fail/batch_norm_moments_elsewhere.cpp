// tests/compile_fail/batch_norm_moments_elsewhere.cpp: batch_norm() with running moments that stayed on the host.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?cpu, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 4, cuda<0>> x, tensor<float, 1> mean, tensor<float, 1> variance) { batch_norm(x, mean, variance); }
#else
void f(tensor<float, 4> x, tensor<float, 1> mean, tensor<float, 1> variance) { eval(batch_norm(x, mean, variance)); }
#endif

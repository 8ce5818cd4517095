// tests/compile_fail/linalg_on_a_gpu.cpp: linear algebra of a tensor on a GPU.
// FIRST-LINE: linear_algebra_on_device<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_the_operands_to_the_host_with_dot_to_cpu
#include <sinter/linalg.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2, cuda<0>>& a) { return det(a); }
#else
auto f(const tensor<float, 2>& a) { return det(a); }
#endif

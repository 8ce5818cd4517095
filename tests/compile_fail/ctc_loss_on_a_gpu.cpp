// tests/compile_fail/ctc_loss_on_a_gpu.cpp: ctc_loss of log-probabilities on a GPU.
// FIRST-LINE: ctc_loss_on_device<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_the_operands_to_the_host_with_dot_to_cpu
#include <sinter/sequences.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 3, cuda<0>>& x, const tensor<int, 2, cuda<0>>& texts) { return ctc_loss(x, texts, {9}, {4}); }
#else
auto f(const variable<float, 3>& x, const tensor<int, 2>& texts) { return ctc_loss(x, texts, {9}, {4}); }
#endif

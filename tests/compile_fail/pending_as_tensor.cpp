// tests/compile_fail/pending_as_tensor.cpp: a tensor made of one that may not have arrived.
// FIRST-LINE: tensor_that_is_still_on_its_way
// FIRST-LINE: call_get_which_waits_for_it
#include <sinter/sinter.hpp>

using namespace sinter;

void f(const tensor<float, 2>& x) {
#ifdef SINTER_MUST_FAIL
  tensor<float, 2, numa<0>> y = x.to_async<numa<0>>();
#else
  tensor<float, 2, numa<0>> y = x.to_async<numa<0>>().get();
#endif
}

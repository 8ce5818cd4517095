// tests/compile_fail/pending_fed_to_module.cpp: a module that is called with a tensor that may not have arrived.
// FIRST-LINE: tensor_that_is_still_on_its_way
// FIRST-LINE: call_get_which_waits_for_it
#include <sinter/sinter.hpp>

using namespace sinter;

void f(const nn::linear<float, numa<0>>& fc, const tensor<float, 2>& x) {
  auto coming = x.to_async<numa<0>>();
#ifdef SINTER_MUST_FAIL
  auto y = infer(fc)(coming);
#else
  auto y = infer(fc)(coming.get());
#endif
}

// tests/compile_fail/pending_reduced.cpp: the sum of a tensor that may not have arrived.
// FIRST-LINE: tensor_that_is_still_on_its_way
// FIRST-LINE: call_get_which_waits_for_it
// LINES-CLANG: 32
#include <sinter/sinter.hpp>

using namespace sinter;

void f(const tensor<float, 2>& x) {
  auto coming = x.to_async<numa<0>>();
#ifdef SINTER_MUST_FAIL
  auto y = sum(coming);
#else
  auto y = sum(coming.get());
#endif
}

// tests/compile_fail/data_parallel_of_chain_over_devices.cpp: replicas of a module that is tied to its devices.
// FIRST-LINE: module_that_cannot_be_replicated<
// FIRST-LINE: declare_it_template_device_D_class_Kind_or_give_it_a_rebind
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::linear<float, numa<0>>& a) {
  nn::data_parallel<numa<2>, numa<3>>(nn::sequential{a, nn::transfer<numa<0>, cpu>{}});
}
#else
void f(const nn::linear<float, numa<0>>& a) { nn::data_parallel<numa<2>, numa<3>>(nn::sequential{a}); }
#endif

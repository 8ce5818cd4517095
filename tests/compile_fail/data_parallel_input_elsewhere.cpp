// tests/compile_fail/data_parallel_input_elsewhere.cpp: replicas fed from another device than the module's own.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<1>, (sinter::)?cpu>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::layer_norm<>& model, const tensor<float, 2, numa<1>>& x) {
  nn::data_parallel<numa<0>, numa<1>>(model)(x);
}
#else
void f(const nn::layer_norm<>& model, const tensor<float, 2>& x) { nn::data_parallel<numa<0>, numa<1>>(model)(x); }
#endif

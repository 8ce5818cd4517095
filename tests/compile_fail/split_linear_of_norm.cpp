// tests/compile_fail/split_linear_of_norm.cpp: columns of a layer that is not linear.
// FIRST-LINE: split_linear_of_what_is_no_linear_layer<.*layer_norm<
// FIRST-LINE: give_an_nn_linear
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::layer_norm<>& layer) { return nn::split_linear<numa<0>, numa<1>>(layer); }
#else
auto f(const nn::linear<>& layer) { return nn::split_linear<numa<0>, numa<1>>(layer); }
#endif

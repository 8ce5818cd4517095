// tests/compile_fail/any_module_of_double.cpp: a norm of double hidden in a module of float.
// FIRST-LINE: mixed_element_types<float, double>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using layer = nn::layer_norm<double>;
#else
using layer = nn::layer_norm<float>;
#endif
auto f(const layer& norm) { return nn::any_module<float, 2>(norm); }

// tests/compile_fail/module_list_called.cpp: a list of modules called as if it were a sequence.
// FIRST-LINE: module_list_has_no_forward
// EXPECT: call_its_modules_in_a_loop
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::module_list<nn::linear<>>& list, tensor<float, 2> x) { list(x); }
#else
void f(const nn::module_list<nn::linear<>>& list, tensor<float, 2> x) { for (const auto& layer : list) layer(x); }
#endif

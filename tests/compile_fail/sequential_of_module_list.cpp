// tests/compile_fail/sequential_of_module_list.cpp: a chain with a list of modules, which is no sequence, among its modules.
// FIRST-LINE: module_list_has_no_forward
// FIRST-LINE: call_its_modules_in_a_loop
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::module_list<nn::linear<>>& list, const tensor<float, 2>& x) { return nn::sequential{list, nn::relu()}(x); }
#else
auto f(const nn::module_list<nn::linear<>>& list, const tensor<float, 2>& x) { return nn::sequential{list[0], nn::relu()}(x); }
#endif

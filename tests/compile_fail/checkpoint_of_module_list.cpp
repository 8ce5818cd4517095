// tests/compile_fail/checkpoint_of_module_list.cpp: a list of modules in a checkpoint as if it were a sequence.
// FIRST-LINE: module_list_has_no_forward
// FIRST-LINE: call_its_modules_in_a_loop
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::module_list<nn::linear<>>& list, const variable<float, 2>& x) { return checkpoint(list, x); }
#else
auto f(const nn::module_list<nn::linear<>>& list, const variable<float, 2>& x) { return checkpoint(list[0], x); }
#endif

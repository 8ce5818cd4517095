// tests/compile_fail/module_input_type.cpp: a module whose forward does not take the input.
// FIRST-LINE: input_that_the_module_does_not_take<(sinter::)?tensor<float, 3
// FIRST-LINE: use_the_element_type_and_rank_that_its_forward_takes
#include <sinter/sinter.hpp>

using namespace sinter;

struct pictures_only : nn::module<pictures_only> {
  tensor<float, 4> forward(const tensor<float, 4>& x) const { return x; }
  SINTER_MEMBERS();
};
#ifdef SINTER_MUST_FAIL
void f(const pictures_only& model, const tensor<float, 3>& x) { model(x); }
#else
void f(const pictures_only& model, const tensor<float, 4>& x) { model(x); }
#endif

// tests/compile_fail/any_module_element_type.cpp: a buffer of a type that an any_module cannot hold.
// FIRST-LINE: parameter_or_buffer_that_any_module_cannot_hold<(sinter::)?nn::buffer<double, 1
// FIRST-LINE: use_rank_0_to_5_and_the_element_type_of_any_module
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using elements = double;
#else
using elements = float;
#endif
template <device D = cpu, class Kind = nn::tracked>
struct layer : nn::module<layer<D, Kind>> {
  nn::buffer<elements, 1, D> seen;
  template <class X>
  auto forward(const X& x) const { return relu(x); }
  SINTER_MEMBERS(seen);
};
auto f(const layer<>& a) { return nn::any_module<float, 2>(a); }

// tests/compile_fail/to_of_fixed_module.cpp: a copy on another device of a module whose type says nothing of its device.
// FIRST-LINE: module_that_is_no_template_of_device_and_kind<model\s?>
// FIRST-LINE: declare_it_template_device_D_class_Kind_or_give_it_a_rebind
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
struct model : nn::module<model> {
  nn::linear<> fc;
  SINTER_MEMBERS(fc);
};
void f(const model& m) { static_cast<void>(m.to<numa<0>>()); }
#else
template <device D = cpu, class Kind = nn::tracked>
struct model : nn::module<model<D, Kind>> {
  nn::linear<float, D, Kind> fc;
  SINTER_MEMBERS(fc);
};
void f(const model<>& m) { static_cast<void>(m.to<numa<0>>()); }
#endif

// tests/compile_fail/module_lists_unknown.cpp: a member in the list whose type says nothing to a module.
// EXPECT: member_that_modules_do_not_understand<(\(anonymous namespace\)::)?options\s?>
// EXPECT: make_it_a_parameter_buffer_or_module_or_say_nn_is_setting
// LINES-GCC: 16
// LINES-CLANG: 30
// LINES-NVCC: 24
#include <sinter/sinter.hpp>

using namespace sinter;

struct options {
  int heads = 4;
};
#ifndef SINTER_MUST_FAIL
template <>
inline constexpr bool sinter::nn::is_setting<options> = true;
#endif

struct model : nn::module<model> {
  using device_type = cpu;
  using kind = nn::tracked;
  template <class F, class... M>
  static void visit(F&& f, M&... m) { f("settings", m.settings...); }
  options settings;
};

model f() { return model(); }

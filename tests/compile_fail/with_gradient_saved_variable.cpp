// tests/compile_fail/with_gradient_saved_variable.cpp: forward saves a variable.
// FIRST-LINE: saved_value_that_is_tracked<.*variable<float, 1
// FIRST-LINE: save_its_detach
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, const variable<float, 1>& w) {
  return sinter::with_gradient([w](const auto& a) { return sinter::with_saved(a * w.value(), w); },
                               [](const auto& g, const auto& s) { return g * s; })(x);
}
#else
auto f(const variable<float, 1>& x, const variable<float, 1>& w) {
  return sinter::with_gradient([w](const auto& a) { return sinter::with_saved(a * w.value(), w.detach()); },
                               [](const auto& g, const auto& s) { return g * s; })(x);
}
#endif

// tests/compile_fail/function_with_captures.cpp: a function in a chain that holds a number.
// FIRST-LINE: neither_a_module_nor_a_function_without_captures
// FIRST-LINE: capture_nothing_or_write_a_module
#include <sinter/sinter.hpp>

using namespace sinter;

auto f(generator& gen, float slope) {
#ifdef SINTER_MUST_FAIL
  return nn::sequential{nn::linear(3, 4, gen), [slope](const auto& x) { return x * slope; }};
#else
  static_cast<void>(slope);
  return nn::sequential{nn::linear(3, 4, gen), [](const auto& x) { return x * 2.f; }};
#endif
}

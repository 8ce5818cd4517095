// tests/compile_fail/let_name_evaluated.cpp: a name of let() stands for one element and cannot be evaluated by itself.
// EXPECT: a name of let\(\) is evaluated outside of the formula
// LINES-GCC: 14
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1> f(tensor<float, 1> x) { return let(x, [](auto t) { return t * eval(t); }); }
#else
tensor<float, 1> f(tensor<float, 1> x) { return let(x, [x](auto t) { return t * eval(x); }); }
#endif

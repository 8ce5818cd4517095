// tests/compile_fail/product_of_ranks.cpp: a product by a name that is for other ranks.
// FIRST-LINE: product_of_ranks<2, 3>
// FIRST-LINE: use_operands_of_ranks<3, 3>
// LINES-CLANG: 28
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& a, const variable<float, 3>& b) { return eval(bmm(a, b)); }
#else
auto f(const variable<float, 2>& a, const variable<float, 3>& b) { return eval(bmm(a.unsqueeze(0), b)); }
#endif

// tests/compile_fail/prelu_weight_rank.cpp: slopes in the shape of an image.
// FIRST-LINE: operands_of_ranks<4, 3\s?>
// FIRST-LINE: use_one_weight_or_one_for_each_channel
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 4>& x, const variable<float, 3>& w) { return prelu(x, w); }
#else
auto f(const variable<float, 4>& x, const variable<float, 3>& w) { return prelu(x, w.flatten()); }
#endif

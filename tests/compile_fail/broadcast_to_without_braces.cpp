// tests/compile_fail/broadcast_to_without_braces.cpp: broadcast_to() with numbers that are not in braces.
// FIRST-LINE: extents_that_are_not_in_braces
// FIRST-LINE: write_them_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x.broadcast_to(4, 3); }
#else
auto f(const tensor<float, 2>& x) { return x.broadcast_to({4, 3}); }
#endif

// tests/compile_fail/sequential_transfer_backwards.cpp: a transfer the wrong way round in a chain.
// FIRST-LINE: adjacent_modules_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: put_a_transfer_between_them_or_move_one_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

using first = nn::linear<>;
using second = nn::linear<float, numa<0>>;

#ifdef SINTER_MUST_FAIL
auto f(first a, second b) { return nn::sequential{a, nn::transfer<numa<0>, cpu>(), b}; }
#else
auto f(first a, second b) { return nn::sequential{a, nn::transfer<cpu, numa<0>>(), b}; }
#endif

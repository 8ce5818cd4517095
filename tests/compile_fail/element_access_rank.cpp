// tests/compile_fail/element_access_rank.cpp: as many indices as axes.
// FIRST-LINE: indices_for_rank<1, 2>
// FIRST-LINE: write_one_index_per_axis
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float f(tensor<float, 2> a) { return a(0); }
#else
float f(tensor<float, 2> a) { return a(0, 0); }
#endif

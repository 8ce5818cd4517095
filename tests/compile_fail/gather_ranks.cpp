// tests/compile_fail/gather_ranks.cpp: gather() with an index of another rank.
// FIRST-LINE: elements_and_index_of_ranks<2, 1>
// FIRST-LINE: use_an_index_of_the_rank_of_the_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> x, tensor<std::int64_t, 1> i) { gather(x, 1, i); }
#else
void f(tensor<float, 2> x, tensor<std::int64_t, 1> i) { gather(x, 1, i.unsqueeze(1)); }
#endif

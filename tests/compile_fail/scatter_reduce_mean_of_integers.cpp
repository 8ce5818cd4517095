// tests/compile_fail/scatter_reduce_mean_of_integers.cpp: a mean whose fraction would be lost.
// FIRST-LINE: element_type_without_this_op<(int|std::int32_t)>
// FIRST-LINE: use_another_element_type_or_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<int, 1> x, tensor<int, 1> i, tensor<int, 1> s) { return scatter_reduce(x, 0, i, s, reduction::mean); }
#else
auto f(tensor<int, 1> x, tensor<int, 1> i, tensor<int, 1> s) { return scatter_reduce(x, 0, i, s, reduction::sum); }
#endif

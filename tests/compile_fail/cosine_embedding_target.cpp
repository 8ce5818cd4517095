// tests/compile_fail/cosine_embedding_target.cpp: targets as rows, where each pair of rows has one.
// FIRST-LINE: prediction_and_target_of_ranks<2, 2\s?>
// FIRST-LINE: use_vectors_or_rows_and_a_target_without_the_last_axis
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& a, const tensor<float, 2>& t) { return cosine_embedding_loss(a, a, t, 0.5); }
#else
auto f(const variable<float, 2>& a, const tensor<float, 2>& t) {
  return cosine_embedding_loss(a, a, t.select(1, 0), 0.5);
}
#endif

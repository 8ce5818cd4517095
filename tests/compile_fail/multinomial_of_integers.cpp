// tests/compile_fail/multinomial_of_integers.cpp: weights of categories are floating point.
// FIRST-LINE: weights_of_element_type<(std::int64_t|long)
// EXPECT: use_floating_point_weights
#include <sinter/sinter.hpp>

using namespace sinter;

void run(generator& gen, const tensor<std::int64_t, 1>& counts) {
#ifdef SINTER_MUST_FAIL
  multinomial(gen, counts, 1);
#else
  multinomial(gen, cast<float>(counts), 1);
#endif
}

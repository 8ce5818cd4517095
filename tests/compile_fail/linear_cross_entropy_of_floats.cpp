// tests/compile_fail/linear_cross_entropy_of_floats.cpp: linear_cross_entropy() with targets that are not integers.
// FIRST-LINE: inputs_weights_and_targets_with_elements_of_type<float, float, float>
// FIRST-LINE: use_one_floating_point_type_and_integer_targets
// LINES-CLANG: 32
#include <sinter/sequences.hpp>

using namespace sinter;

using matrix = variable<float, 2>;

#ifdef SINTER_MUST_FAIL
void f(matrix x, matrix w, tensor<float, 1> targets) { linear_cross_entropy(x, w, targets, {.z_loss = 1e-4}); }
#else
void f(matrix x, matrix w, tensor<std::uint8_t, 1> targets) { linear_cross_entropy(x, w, targets, {.z_loss = 1e-4}); }
#endif

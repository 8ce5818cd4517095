// tests/compile_fail/tiles_input_elsewhere.cpp: tiles fed from another device than the module's own.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<0>, (sinter::)?cpu>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using grid = nn::tiles<1, 2, numa<0>, numa<1>>;

#ifdef SINTER_MUST_FAIL
void f(const nn::batch_norm2d<>& model, const tensor<float, 4, numa<0>>& x) {
  nn::tile_parallel<grid>(model)(x);
}
#else
void f(const nn::batch_norm2d<>& model, const tensor<float, 4>& x) {
  nn::tile_parallel<grid>(model)(x);
}
#endif

// tests/compile_fail/tiles_layer_without_rule.cpp: a layer among tiles that reads the whole image.
// FIRST-LINE: module_has_no_tile_rule<(sinter::)?(nn::)?flatten ?>
// FIRST-LINE: put_it_behind_the_tiles_or_specialise_nn_tile_rule
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using grid = nn::tiles<1, 2, numa<0>, numa<1>>;

#ifdef SINTER_MUST_FAIL
void f(const nn::conv2d<>& first) { nn::tile_parallel<grid>(nn::sequential{first, nn::relu(), nn::flatten()}); }
#else
void f(const nn::conv2d<>& first) {
  nn::sequential{nn::tile_parallel<grid>(nn::sequential{first, nn::relu()}), nn::flatten()};
}
#endif

// tests/docs/tiles_test.cpp: the snippets of docs/tiles.md, as tests.
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:block]
template <device D = cpu, class Kind = nn::tracked>
struct tiled_block : nn::module<tiled_block<D, Kind>> {
  nn::conv2d<float, D, Kind, false> conv1, conv2;
  nn::batch_norm2d<float, D, Kind> bn1, bn2;

  template <class X>
  auto forward(const X& input) const {
    const auto x = eval(input);
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + x);
  }
  SINTER_MEMBERS(conv1, bn1, conv2, bn2);
};
// [docs:end]

}  // namespace

// [docs:rule]
template <device D, class Kind>
struct sinter::nn::tile_rule<tiled_block<D, Kind>> {
  static auto steps(const tiled_block<D, Kind>& b) {  // what forward() does, as a list
    return tile_steps(tile_sum(tile_steps(b.conv1, b.bn1, relu(), b.conv2, b.bn2), tile_steps()), relu());
  }
};
// [docs:end]

TEST_CASE("docs: tiles.md") {
  generator gen(1);
  const tensor images = randn<float>(gen, {4, 3, 32, 48});
  const tensor labels = randint(gen, 0, 10, {4});
  const auto conv = [&] { return nn::conv2d(8, 8, 3, gen, {.padding = 1}, nn::no_bias); };
  const tiled_block<> block{{}, conv(), conv(), nn::batch_norm2d(8), nn::batch_norm2d(8)};

  // [docs:module]
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  using grid = nn::tiles<1, 2, numa<0>, numa<1>>;  // one row of two tiles: the left and the right half
  const nn::sequential features{nn::conv2d(3, 8, 5, gen, {.stride = 2, .padding = 2}), nn::relu(),
                                nn::max_pool2d(3, {.stride = 2, .padding = 1}), block};
  const nn::sequential model{nn::tile_parallel<grid>(features), nn::adaptive_avg_pool2d(1), nn::flatten(),
                             nn::linear(8, 10, gen)};
  optim::sgd optimizer(model, {.lr = 0.1});
  variable loss = cross_entropy(model(images), labels);  // both halves of every image at the same time
  loss.backward();                                       // and their gradients
  optimizer.step();
  // [docs:end]
  CHECK(loss.item() > 0);
}

// tests/compiled/layers.cpp: a program with each layer and loss that cpu/stock.hpp holds, trained and in inference, for
// stock.py.
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

template <class M, class X>
void train(const M& model, const X& x) {
  const auto y = eval(model(x));
  y.backward(y.value());
  model.zero_grad();
}
template <class M, class X>
void use(const M& model, const X& x) {
  train(model, x);
  const auto y = eval(infer(model)(x));
}

}  // namespace

int main() {
  generator gen(1);
  const auto line = randn<float>(gen, {2, 4, 16});
  const auto image = randn<float>(gen, {2, 4, 16, 16});

  const auto rows = randn<float>(gen, {8, 16});
  use(nn::sequential{nn::conv1d(4, 8, 3, gen), nn::batch_norm1d(8), nn::relu(), nn::max_pool1d(2),
                     nn::conv1d(8, 8, 3, gen), nn::relu(), nn::avg_pool1d(2)},
      line);
  use(nn::sequential{nn::conv2d(4, 8, 3, gen), nn::group_norm(2, 8), nn::relu(), nn::conv2d(8, 8, 3, gen), nn::silu(),
                     nn::upsample({.scale_factor = 2}), nn::avg_pool2d(2)},
      image);
  use(nn::sequential{nn::linear(16, 16, gen), nn::layer_norm({16}), nn::relu(), nn::dropout(0.5, gen),
                     nn::linear(16, 16, gen), nn::gelu(), nn::linear(16, 4, gen)},
      rows);
  use(nn::sequential{nn::linear(16, 16, gen), nn::batch_norm1d(16), nn::relu(), nn::linear(16, 4, gen)}, rows);
  const tensor<std::int64_t, 2> ids = randint<std::int64_t>(gen, 0, 20, {8, 5});
  use(nn::sequential{nn::embedding(20, 16, gen, {.max_norm = 3.0}), nn::layer_norm({16})}, ids);
  use(nn::sequential{nn::embedding_bag(20, 16, gen, {.padding_idx = 0}), nn::linear(16, 4, gen)}, ids);
  const nn::linear one(16, 4, gen);
  const auto targets = randn<float>(gen, {8, 4});
  const variable a = mse_loss(one(rows), targets);
  const variable b = bce_with_logits(one(rows), targets);
  (a + b).backward();
}

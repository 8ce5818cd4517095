// tests/package/compiled/main.cpp: a program whose files share tensors, threads and gradients, whichever of them is
// compiled with SINTER_COMPILED.
#include <cstdio>

#include <sinter/sinter.hpp>

using namespace sinter;

static_assert(SINTER_COMPILED);

float trained_elsewhere(const nn::linear<float>& layer, const tensor<float, 2>& x);
int threads_elsewhere();

int main() {
  generator gen(1);
  const nn::linear layer(3, 2, gen);
  const tensor x = randn<float>(gen, {4, 3});
  set_num_threads(3);
  const variable loss = mean(square(layer(x)));
  loss.backward();
  const tensor gradient = layer.weight.grad().clone();
  layer.weight.zero_grad();
  layer.bias.zero_grad();
  const float there = trained_elsewhere(layer, x);
  const bool same = there == loss.item() && eval(all(layer.weight.grad() == gradient)).item();
  std::printf("%d %d\n", same, threads_elsewhere());
  return same && threads_elsewhere() == 3 ? 0 : 1;
}

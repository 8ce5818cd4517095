// tests/package/compiled/header_only.cpp: a file that holds all that it needs.
#include <sinter/sinter.hpp>

using namespace sinter;

static_assert(!SINTER_COMPILED);

float trained_elsewhere(const nn::linear<float>& layer, const tensor<float, 2>& x) {
  const variable loss = mean(square(layer(x)));
  loss.backward();
  return loss.item();
}
int threads_elsewhere() { return num_threads(); }

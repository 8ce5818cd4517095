// tests/bench/tiles.cpp: a training step of convolutions on one device and over two tiles, one thread each.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/tiles.cpp -pthread
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

#include <cstdio>
#include <vector>

#include "timing.hpp"

using namespace sinter;

namespace {

template <class Net>
void compare(const char* name, const Net& one, const extents<4>& shape) {
  generator gen(1);
  const tensor x = randn<float>(gen, shape);
  const auto many = nn::tile_parallel<nn::tiles<2, 1, numa<0>, numa<1>>>(one.template to<cpu>());
  const auto step = [&](const auto& net) {
    const variable loss = mean(square(net(x)));
    net.zero_grad();
    loss.backward();
  };
  std::vector<double> ours, theirs, ratios;
  for (int turn = -2; turn < 9; ++turn) {
    const double a = milliseconds([&] { step(one); }), b = milliseconds([&] { step(many); });
    if (turn < 0) continue;  // memory is new
    ours.push_back(a);
    theirs.push_back(b);
    ratios.push_back(a / b);
  }
  std::printf("%s: one device %.0f ms, two tiles %.0f ms, %.2f times as fast\n", name, median(ours), median(theirs),
              median(ratios));
}

}  // namespace

int main() {
  set_num_threads(1);
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  generator gen(1);
  const nn::sequential alexnet{nn::conv2d(3, 96, 11, gen, {.stride = 4, .padding = 2}),
                               nn::relu(),
                               nn::max_pool2d(3, {.stride = 2}),
                               nn::conv2d(96, 256, 5, gen, {.padding = 2}),
                               nn::relu(),
                               nn::max_pool2d(3, {.stride = 2}),
                               nn::conv2d(256, 384, 3, gen, {.padding = 1}),
                               nn::relu(),
                               nn::conv2d(384, 384, 3, gen, {.padding = 1}),
                               nn::relu(),
                               nn::conv2d(384, 256, 3, gen, {.padding = 1}),
                               nn::relu(),
                               nn::max_pool2d(3, {.stride = 2})};
  compare("AlexNet's convolutions, 8 pictures", alexnet, {8, 3, 224, 224});
  const auto conv = [&](index_t inputs, index_t outputs) {
    return nn::conv2d(inputs, outputs, 3, gen, {.padding = 1}, nn::no_bias);
  };
  const nn::sequential norms{
      conv(3, 32),  nn::batch_norm2d(32), nn::relu(), conv(32, 32), nn::batch_norm2d(32), nn::relu(), nn::max_pool2d(2),
      conv(32, 64), nn::batch_norm2d(64), nn::relu(), conv(64, 64), nn::batch_norm2d(64), nn::relu()};
  compare("convolutions of 3 x 3 with batch norm, 1 picture of 512 x 512", norms, {1, 3, 512, 512});
}

// tests/bench/compile/convnet.cpp: a program that trains a convolutional network, for compile_time.py.
#include <sinter/sinter.hpp>

#include <cstdio>

using namespace sinter;

int main() {
  generator gen(1);
  const nn::sequential model{nn::conv2d(3, 16, 3, gen, {.padding = 1}),
                             nn::batch_norm2d(16),
                             nn::relu(),
                             nn::max_pool2d(2),
                             nn::conv2d(16, 32, 3, gen, {.padding = 1}),
                             nn::batch_norm2d(32),
                             nn::relu(),
                             nn::max_pool2d(2),
                             nn::flatten(),
                             nn::linear(32 * 8 * 8, 64, gen),
                             nn::relu(),
                             nn::linear(64, 10, gen)};
  optim::adam optimizer(model, {.lr = 1e-3});
  const tensor x = randn<float>(gen, {64, 3, 32, 32});
  const tensor labels = randint(gen, 0, 10, {64});
  for (int step = 0; step < 20; ++step) {
    const variable loss = cross_entropy(model(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("step %d: loss %.4f\n", step, loss.item());
  }
}

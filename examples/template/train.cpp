// train.cpp: trains the network of model.hpp, and saves it.
#include <sinter/io.hpp>

#include <cstdio>

#include "model.hpp"

int main(int argc, char** argv) {
  generator gen(1);
  const auto [points, arms] = spirals(1000, gen);
  spiral_net<> model(32, gen);
  optim::adam optimizer(model, {.lr = 0.01});
  for (int step = 1; step <= 500; ++step) {
    variable loss = cross_entropy(model(points), arms);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 100 == 0) std::printf("step %d: loss %.4f\n", step, loss.item());
  }
  nn::save(model, argc > 1 ? argv[1] : "spirals.safetensors");
}

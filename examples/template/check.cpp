// check.cpp: loads what train.cpp has saved, and asks it about points that it has not seen.
#include <sinter/io.hpp>

#include <cstdio>

#include "model.hpp"

int main(int argc, char** argv) {
  generator gen(2);
  const auto [points, arms] = spirals(1000, gen);
  spiral_net<> model(32, gen);
  nn::load(model, argc > 1 ? argv[1] : "spirals.safetensors");
  const float right = mean(cast<float>(argmax(infer(model)(points), 1) == arms)).item();
  std::printf("%.1f %% of new points are right\n", 100 * right);
  return right > 0.95f ? 0 : 1;
}

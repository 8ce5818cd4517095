// examples/00_spirals.cpp: the program of the README, which tells two spirals apart.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/00_spirals.cpp -pthread -o spirals
// ctest:
// [docs:program]
#include <sinter/sinter.hpp>

#include <iostream>

using namespace sinter;

int main() {
  generator gen(1);
  const tensor arm = randint(gen, 0, 2, {1000});  // points of two spirals, and to which each belongs
  const tensor radius = sqrt(rand(gen, {1000}));
  const tensor angle = 9 * radius + 3.1416f * arm.to<float>();
  const tensor points = stack(1, radius * cos(angle), radius * sin(angle)) + 0.02f * randn(gen, {1000, 2});

  const nn::sequential model{nn::linear(2, 32, gen), nn::tanh(), nn::linear(32, 32, gen), nn::tanh(),
                             nn::linear(32, 2, gen)};
  optim::adam optimizer(model, {.lr = 0.01});
  for (int step = 1; step <= 300; ++step) {
    variable loss = cross_entropy(model(points), arm);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss.item() << '\n';
  }

  const tensor right = argmax(infer(model)(points), 1) == arm;
  std::cout << right.to<float>().mean().item() << " of the points are told apart\n";
}
// [docs:end]

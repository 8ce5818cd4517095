// tests/package/shipping/steps.cpp: formulas that are compiled for several sets of vector instructions.
#include "steps.hpp"

#include <iostream>

using namespace sinter;

static const std::string name = std::string("ste") + "ps";  // set before main, by code of the set

step_result train(const nn::linear<float>& model, const tensor<float, 2>& x, const tensor<std::int64_t, 1>& labels) {
  if (name != "steps") throw value_error("a static object was not initialised");
  if (x.extent(0) != labels.extent(0)) throw shape_error("train: rows and labels");
  optim::adam optimizer(model, {.lr = 0.1});
  float last = 0;
  for (int i = 0; i < 10; ++i) {
    const variable loss = cross_entropy(tanh(model(x)) * 2, labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = loss.item();
  }
  return {last, softmax(infer(model)(x), 1)};
}
bool is_tracked_here() {
  const variable<float, 1> x(tensor<float, 1>{1, 2});
  const variable y = x * x;
  return !y.is_leaf() && num_threads() == 3 && memory<cpu>().bytes_in_use > 0;
}

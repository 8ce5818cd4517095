// tests/docs/placement_test.cpp: the snippets of docs/placement.md, as tests.
#include <iostream>
#include <sstream>

#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

// [docs:member]
using layer_chain = nn::sequential<nn::conv2d<>, nn::relu, nn::adaptive_avg_pool2d, nn::flatten>;

struct split_model : nn::module<split_model> {
  using device_type = numa<0>;  // where it takes its input
  using output_device = cpu;    // where its output is; said by every class with members on several devices
  decltype(nn::placed<nn::cut<0, numa<0>>, nn::cut<2, cpu>>(layer_chain())) features;
  nn::linear<> head;

  template <class X>
  auto forward(const X& x) const {
    return head(features(x));
  }
  SINTER_MEMBERS(features, head);
};
// [docs:end]

TEST_CASE("docs: placement.md") {
  generator gen(1);
  const tensor images = randn<float>(gen, {8, 3, 8, 8});
  const tensor labels = randint(gen, 0, 10, {8});
  std::ostringstream out;

  // [docs:placed]
  const nn::sequential chain{nn::conv2d(3, 8, 3, gen, {.padding = 1}), nn::relu(), nn::adaptive_avg_pool2d(1),
                             nn::flatten(), nn::linear(8, 10, gen)};
  const auto split = nn::placed<nn::cut<0, numa<0>>, nn::cut<3, cpu>>(chain);  // layers 0 to 2, and from 3 on
  optim::sgd optimizer(split, {.lr = 0.1});
  variable loss = cross_entropy(split(images.to<numa<0>>()), labels);  // the input where layer 0 is
  loss.backward();
  optimizer.step();
  // [docs:end]
  CHECK(loss.item() > 0);

  // [docs:times]
  split.record_times();
  variable(cross_entropy(split(images.to<numa<0>>()), labels)).backward();
  const nn::step_times t = split.times();
  double waited = t.devices[0].idle;       // of numa<0>, in seconds
  double copied = t.transfers[0].forward;  // the value at the cut
  out << t;                                // a line for each stage, transfer and device
  // [docs:end]
  CHECK(waited >= 0);
  CHECK(copied >= 0);

  // [docs:advise]
  const nn::advice a = nn::advise<numa<0>, numa<1>>(
      chain, nn::cuts<3>{}, images, labels, [](const auto& scores, const auto& l) { return cross_entropy(scores, l); },
      {.repeats = 3}, [](const auto& module) { return optim::adam(module); });
  out << a;  // tables, and: "No: numa:0 alone takes 0.412 ms a step, and 0.533 ms with ..."
  bool pays = a.several_devices;
  std::string line = a.answer().code;  // "auto model = nn::placed<nn::cut<0, numa<0>>>(chain);"
  // [docs:end]
  CHECK(pays == (a.verdict[0] == 'Y'));
  CHECK(line.find("nn::placed<nn::cut<0, numa<") != std::string::npos);
  CHECK(out.str().find(a.verdict) != std::string::npos);
}

TEST_CASE("docs: placement.md, a member") {
  generator gen(1);
  const tensor images = randn<float>(gen, {8, 3, 8, 8});
  const tensor labels = randint(gen, 0, 10, {8});
  // [docs:use]
  const layer_chain chain{nn::conv2d(3, 8, 3, gen), nn::relu(), nn::adaptive_avg_pool2d(1), nn::flatten()};
  const split_model model{{}, nn::placed<nn::cut<0, numa<0>>, nn::cut<2, cpu>>(chain), nn::linear(8, 10, gen)};
  variable loss = cross_entropy(model(images.to<numa<0>>()), labels);
  // [docs:end]
  loss.backward();
  CHECK(model.features.get<0>().weight.has_grad());
  CHECK(model.named_parameters()[0].name == "features.0.weight");
}

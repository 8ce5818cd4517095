// tests/docs/offload_test.cpp: the snippets of docs/offload.md, as tests.
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

// [docs:member]
struct model_of_tasks : nn::module<model_of_tasks> {
  using device_type = numa<0>;    // where it takes its input
  using output_device = numa<0>;  // where its output is; said by every class with members on several devices
  nn::checkpointed_module<nn::linear<float, numa<0>>, cpu> shared;  // made by nn::checkpointed<cpu>(...)
  nn::offloaded<numa<0>, nn::linear<>> heads;                       // from the cpu to numa<0>

  template <class X>
  auto scores(index_t task, const X& x) const {
    return heads.fetch(task)(tanh(shared(x)));
  }
  SINTER_MEMBERS(shared, heads);
};
struct wide_model : nn::module<wide_model> {
  decltype(nn::split_linear<numa<0>, numa<1>>(nn::linear<>())) wide;
  nn::linear<> last;

  template <class X>
  auto forward(const X& x) const {
    return last(relu(wide(x)));
  }
  SINTER_MEMBERS(wide, last);
};
// [docs:end]

TEST_CASE("docs: offload.md, checkpoints") {
  generator gen(1);
  const tensor images = randn<float>(gen, {8, 3, 8, 8});
  const tensor labels = randint(gen, 0, 10, {8});

  // [docs:checkpointed]
  const auto block = [&](index_t in, index_t out) {
    return nn::sequential{nn::conv2d(in, out, 3, gen, {.padding = 1}), nn::batch_norm2d(out), nn::relu(),
                          nn::dropout(0.1, gen)};
  };
  const nn::sequential model{nn::checkpointed(block(3, 8)), nn::checkpointed(block(8, 8)), nn::adaptive_avg_pool2d(1),
                             nn::flatten(), nn::linear(8, 10, gen)};
  variable loss = cross_entropy(model(images), labels);  // of each block only its input is kept
  loss.backward();                                       // each block runs again, with the same dropout
  // [docs:end]
  CHECK(model.get<0>().module.get<0>().weight.has_grad());

  const variable x = randn<float>(gen, {4, 6}), y = randn<float>(gen, {4, 6});
  const nn::linear fc(6, 6, gen);
  // [docs:function]
  variable z = checkpoint([&](const auto& a, const auto& b) { return tanh(fc(a)) * b; }, x, y);
  // [docs:end]
  variable(sum(z)).backward();
  CHECK(fc.weight.has_grad());

  const nn::sequential<nn::linear<float, numa<0>>, nn::tanh> first{nn::linear<float, numa<0>>(6, 6, gen), nn::tanh()};
  const auto second = first.to<numa<0>>();
  // [docs:moved]
  const nn::sequential deep{nn::checkpointed<cpu>(first),
                            nn::checkpointed<cpu>(second)};  // first and second: on numa<0>
  // [docs:end]
  variable(sum(deep(ones<float, numa<0>>({4, 6})))).backward();
  CHECK(first.get<0>().weight.has_grad());
}

TEST_CASE("docs: offload.md, tasks") {
  generator gen(1);
  struct example {
    index_t task;
    tensor<float, 2, numa<0>> features;
    tensor<std::int64_t, 1, numa<0>> labels;
  };
  std::vector<example> batches;
  for (const index_t task : {3, 17, 3})
    batches.push_back({task, randn<float, numa<0>>(gen, {8, 16}), randint<std::int64_t, numa<0>>(gen, 0, 4, {8})});

  // [docs:offloaded]
  const nn::linear<float, numa<0>> shared(16, 12, gen);  // what all tasks use: on the device
  const nn::offloaded<numa<0>, nn::linear<>> heads(100, [&] { return nn::linear(12, 4, gen); }, {.copies = 2});
  optim::adam optimizer(shared);
  optimizer.add(heads);  // updates the heads on the cpu, where they and their gradients are
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto& [task, features, labels] = batches[i];
    const auto head = heads.fetch(task);  // a module on numa<0>
    if (i + 1 < batches.size()) heads.prefetch(batches[i + 1].task);
    variable loss = cross_entropy(head(tanh(shared(features))), labels);
    optimizer.zero_grad();
    loss.backward();   // adds to the gradients of heads[task]
    optimizer.step();  // passes over the heads of all other tasks
  }
  // [docs:end]
  CHECK(heads.copies() <= 2);
  CHECK_FALSE(heads[4].weight.has_grad());
}

TEST_CASE("docs: offload.md, columns") {
  generator gen(1);
  const tensor x = randn<float>(gen, {4, 64});
  // [docs:split_linear]
  const nn::linear wide(64, 1000, gen);
  const nn::sequential model{nn::split_linear<numa<0>, numa<1>>(wide, {600, 400}), nn::relu(),
                             nn::linear(1000, 10, gen)};
  variable y = model(x);                         // x and y are on the cpu, where wide is
  nn::linear<> whole = model.get<0>().joined();  // all columns, to save them
  // [docs:end]
  variable(sum(y)).backward();
  CHECK(model.get<0>().part<1>().weight.extent(0) == 400);
  CHECK(all(whole.weight.value() == wide.weight.value()).item());
}

TEST_CASE("docs: offload.md, members") {
  generator gen(1);
  const tensor x = randn<float>(gen, {4, 6});
  const tensor labels = randint(gen, 0, 3, {4});
  // [docs:use]
  const nn::linear<float, numa<0>> shared(6, 8, gen);
  const model_of_tasks tasks{{}, nn::checkpointed<cpu>(shared), {20, [&] { return nn::linear(8, 3, gen); }}};
  variable loss = cross_entropy(tasks.scores(7, x.to<numa<0>>()), labels.to<numa<0>>());
  const wide_model columns{{}, nn::split_linear<numa<0>, numa<1>>(nn::linear(6, 40, gen)), nn::linear(40, 3, gen)};
  variable other = cross_entropy(columns(x), labels);
  // [docs:end]
  loss.backward();
  other.backward();
  CHECK(shared.weight.has_grad());
  CHECK(tasks.heads[7].weight.has_grad());
  CHECK(tasks.named_parameters()[2].name == "heads.0.weight");
  CHECK(columns.wide.part<1>().weight.has_grad());
}

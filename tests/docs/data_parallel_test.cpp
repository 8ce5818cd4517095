// tests/docs/data_parallel_test.cpp: the snippets of docs/data-parallel.md, as tests.
#include <sinter/data.hpp>
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:member]
template <device D = cpu, class Kind = nn::tracked>
struct classifier : nn::module<classifier<D, Kind>> {
  nn::data_parallel_over<nn::linear<float, D, Kind>, numa<0>, numa<1>> body;
  nn::linear<float, D, Kind> head;

  template <class X>
  auto forward(const X& x) const {
    return head(relu(body(x)));
  }
  SINTER_MEMBERS(body, head);
};
classifier<> make_classifier(generator& gen) {
  return {{}, nn::data_parallel<numa<0>, numa<1>>(nn::linear(64, 32, gen)), nn::linear(32, 10, gen)};
}
// [docs:end]

}  // namespace

TEST_CASE("docs: data-parallel.md") {
  generator gen(1);
  const tensor images = randn<float>(gen, {32, 3, 8, 8});
  const tensor labels = randint(gen, 0, 10, {32});

  // [docs:module]
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  const nn::sequential features{nn::conv2d(3, 8, 3, gen, {.padding = 1}), nn::relu(), nn::adaptive_avg_pool2d(1),
                                nn::flatten()};
  const nn::sequential model{nn::data_parallel<numa<0>, numa<1>>(features), nn::linear(8, 10, gen)};
  optim::sgd optimizer(model, {.lr = 0.1});
  variable loss = cross_entropy(model(images), labels);  // 16 images on each device
  loss.backward();                                       // both halves at the same time
  optimizer.step();                                      // the replicas follow at their next call
  // [docs:end]
  CHECK(loss.item() > 0);

  const auto of_struct = make_classifier(gen);
  const tensor pixels = randn<float>(gen, {5, 64});
  const variable given = of_struct(pixels);
  CHECK(max(abs(infer(of_struct)(pixels) - given.value())).item() < 1e-6f);

  // [docs:shards]
  const auto replicas = nn::data_parallel<numa<0>, numa<1>>(nn::sequential{features, nn::linear(8, 10, gen)});
  optim::sgd steps(replicas, {.lr = 0.1});
  data_loader loader(nn::sharded<numa<0>, numa<1>>(tensor_dataset(images, labels)),
                     {.batch_size = 16, .shuffle = true});
  for (const auto& [x, y] : loader) {  // shards: each on its device already
    steps.zero_grad();
    double mean_loss =
        replicas.backward(x, y, [](const auto& scores, const auto& l) { return cross_entropy(scores, l); });
    steps.step();
    CHECK(mean_loss > 0);
  }
  // [docs:end]
}

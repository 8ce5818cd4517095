// tests/docs/distributed_test.cpp: the snippets of docs/distributed.md, as tests.
#include <sinter/data.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include "../catch.hpp"

using namespace sinter;

namespace {

tensor_dataset<tensor<float, 2>, tensor<std::int64_t, 1>> samples() {
  generator gen(7);
  const tensor x = randn<float>(gen, {40, 6});
  return {x, cast<std::int64_t>(sum(x, 1) > 0)};
}

// [docs:train]
template <communicator_on<cpu> C>
double train(C& world, int epochs) {
  generator gen(42);
  nn::sequential model{nn::linear(6, 32, gen), nn::relu(), nn::dropout(0.2, gen), nn::linear(32, 2, gen)};
  nn::distributed ranks(model, world);  // all ranks now have the values of rank 0
  optim::adam optimizer(model, {.lr = 1e-2});
  data_loader loader(samples(), {.batch_size = 8, .shuffle = true, .sampler = distributed_sampler(world)});
  double loss = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const auto run = ranks.run(
        loader, [&](const auto& batch) { return cross_entropy(model(batch.inputs), batch.targets); },
        [&] {
          optimizer.step();
          optimizer.zero_grad();
        });
    loss = run.mean_loss;  // over the samples of all ranks
  }
  return loss;
}
// [docs:end]

// [docs:loop]
template <communicator_on<cpu> C>
void own_loop(C& world) {
  generator gen(42);
  nn::linear model(6, 2, gen);
  nn::distributed ranks(model, world);
  optim::sgd optimizer(model, {.lr = 0.1});
  data_loader loader(samples(), {.batch_size = 10, .sampler = distributed_sampler(world)});
  for (const auto& [x, y] : loader) {
    ranks.begin(x.extent(0));                                // tells the others, beside the forward pass
    const samples_from numbers(world.rank(), world.size());  // dropout draws as one rank with the whole batch
    optimizer.zero_grad();
    variable loss = cross_entropy(model(x), y);
    ranks.backward(loss, x.extent(0));
    optimizer.step();
  }
}
// [docs:end]

}  // namespace

TEST_CASE("docs: distributed.md, training") {
  std::vector<double> losses;
  for (const int size : {1, 2}) {
    double of_rank_0 = 0;
    CHECK_NOTHROW(run_ranks(size, {}, [&](thread_communicator world) {
      const double loss = train(world, 40);
      if (world.rank() == 0) of_rank_0 = loss;
      own_loop(world);
    }));
    losses.push_back(of_rank_0);
  }
  CHECK(losses[0] < 0.4);
  CHECK(losses[1] < 0.6);
}

TEST_CASE("docs: distributed.md, batch norm") {
  CHECK_NOTHROW(run_ranks(2, {}, [](thread_communicator world) {
    generator gen(1);
    // [docs:norm]
    nn::sequential block{nn::conv2d(1, 4, 3, gen), nn::sync_batch_norm(world, nn::batch_norm2d(4)), nn::relu()};
    // [docs:end]
    nn::distributed ranks(block, world);
    variable<float, 0> loss = mean(square(block(randn<float>(gen, {2, 1, 8, 8}))));
    ranks.backward(loss, 2);
    // [docs:report]
    const nn::distributed_report r = ranks.report();
    std::printf("%d steps, %.1f MB of gradients, %.0f %% of communication hidden\n", static_cast<int>(r.steps),
                static_cast<double>(r.bytes) / 1e6, 100 * r.hidden());
    // [docs:end]
  }));
}

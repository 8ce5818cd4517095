// tests/docs/sharding_test.cpp: the snippets of docs/sharding.md.
#include "../catch.hpp"
#include "two_classes.hpp"

#include <filesystem>

#include <sinter/data.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

/// The mean loss of the last of `epochs`.
template <communicator_on<cpu> C>
double train(C& world, const std::string& path, index_t epochs) {
  // [docs:sharded]
  generator gen(42);
  nn::sequential model{nn::linear(4, 64, gen), nn::relu(), nn::linear(64, 2, gen)};
  nn::distributed ranks(model, world);
  optim::sharded<optim::adam> optimizer(ranks, {.lr = 1e-2});
  optim::lr_scheduler scheduler(optimizer, optim::cosine_lr{.period = 10});
  // [docs:end]
  double mean_loss = 0;
  distributed_sampler share(world);
  data_loader loader(two_classes(), {.batch_size = 24 / world.size(), .sampler = share});
  // [docs:checkpoint]
  run_checkpoint file(path);
  if (file.exists()) file.load(model, optimizer, scheduler);  // on all ranks
  while (scheduler.epoch() < epochs) {
    for (const auto& [x, y] : loader) {
      optimizer.zero_grad();
      variable loss = cross_entropy(model(x), y);
      ranks.backward(loss, x.extent(0));
      optim::clip_grad_norm(model, 1.0);
      optimizer.step();
      mean_loss = double{loss.item()};
    }
    scheduler.step();
    optimizer.gather_state();  // on all ranks
    if (ranks.rank() == 0) file.save(model, optimizer, scheduler);
    world.barrier("the file is there").get();
  }
  // [docs:end]
  return world.all_reduce(tensor<double, 1>{mean_loss / world.size()}).get()(0);
}

}  // namespace

TEST_CASE("docs: sharding.md, a run goes on with another number of ranks") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_docs_sharded.ckpt").string();
  const auto run = [&](int ranks, index_t epochs) {
    double loss = 0;
    run_ranks(ranks, {}, [&](thread_communicator world) {
      const double own = train(world, path, epochs);
      if (world.rank() == 0) loss = own;
    });
    return loss;
  };
  std::filesystem::remove(path);
  const double whole = run(1, 6);
  std::filesystem::remove(path);
  run(4, 4);
  CHECK(run(2, 6) == Approx(whole).epsilon(1e-4));
  std::filesystem::remove(path);
}

TEST_CASE("docs: sharding.md, nodes") {
  std::atomic<int> right{0};
  run_ranks(5, {}, [&](thread_communicator world) {
    // [docs:nodes]
    hierarchical_communicator ranks(world, 2);  // ranks 0, 1 on one machine, 2, 3 on the next, 4 on the last
    tensor sum = ranks.all_reduce(ones<float>({1000}), reduction::sum, "gradients").get();
    // [docs:end]
    const int my_machine = world.rank() % 2;
    // [docs:uneven]
    auto on_this_machine = world.split(my_machine, world.rank());
    hierarchical_communicator any_nodes(on_this_machine, world);
    // [docs:end]
    if (sum(0) == 5 && any_nodes.all_reduce(ones<float>({1})).get()(0) == 5) ++right;
  });
  CHECK(right == 5);
}

TEST_CASE("docs: sharding.md, compress") {
  run_ranks(2, {}, [](thread_communicator world) {
    generator gen(1);
    nn::linear<float> model(4, 2, gen);
    // [docs:compress]
    nn::distributed ranks(model, world, {.compress = true});
    // [docs:end]
    variable loss = mean(square(model(ones<float>({3, 4}))));
    ranks.backward(loss, 3);
    if (!model.weight.has_grad()) throw std::runtime_error("no gradient");
  });
}

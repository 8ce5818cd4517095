// tests/ranks/mixed_precision_test.cpp: a policy of mixed precision in checkpoints, and with its masters spread over
// ranks.
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include "../catch.hpp"
#include "../io/folder.hpp"
#include "communicator_checks.hpp"
#include "training_run.hpp"

using namespace sinter;
using Catch::Contains;
using communicator_checks::require;

namespace {

auto network(std::uint64_t seed) {
  generator gen(seed);
  return nn::sequential{nn::linear<half>(4, 6, gen), nn::tanh(), nn::linear<bfloat16>(6, 3, gen)};
}
using network_type = decltype(network(1));

variable<float, 0> loss_of(const network_type& model, index_t step) {
  generator gen(static_cast<std::uint64_t>(step));
  const tensor x = randn<float>(gen, {8, 4});
  const variable hidden = model.get<1>()(model.get<0>()(cast<half>(x)));
  return mean(square(cast<float>(model.get<2>()(cast<bfloat16>(hidden))) - sum(x, 1, keepdim)));
}

/// Masters take steps that the parameters do not see; the first two losses overflow, and the scale grows each third
/// step.
template <class Optimizer>
struct run {
  network_type model;
  optim::mixed_precision<Optimizer> policy;
  optim::lr_scheduler<optim::exponential_lr> scheduler{policy, {0.9}};
  run(std::uint64_t seed, const typename Optimizer::options_type& options)
      : model(network(seed)), policy(model, options, {.init_scale = 0x1p20, .growth_interval = 3}) {}
  void train(index_t from, index_t to) {
    for (index_t i = from; i < to; ++i) {
      policy.zero_grad();
      policy.backward(loss_of(model, i) * (i < 2 ? 1e6f : 1));
      policy.clip_grad_norm(model, 0.5);
      policy.step();
      scheduler.step();
    }
  }
  std::string bits() const {
    std::string all = bits_of(model);
    for (const auto& m : policy.saved_members())
      if (const auto value = policy.saved_value(m))
        all.append(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
    return all;
  }
};

template <class Optimizer>
void check_resume(const typename Optimizer::options_type& options) {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  run<Optimizer> whole(3, options);
  whole.train(0, 12);
  CHECK(whole.policy.scaler().get_scale() != 0x1p20);
  for (const index_t stop : {1, 4, 9}) {
    run<Optimizer> first(3, options), second(77, options);
    first.train(0, stop);
    file.save(first.model, first.policy, first.scheduler);
    file.load(second.model, second.policy, second.scheduler);
    CHECK((second.bits() == first.bits()));
    second.train(stop, 12);
    CHECK((second.bits() == whole.bits()));
    CHECK(second.policy.scaler().get_scale() == whole.policy.scaler().get_scale());
    CHECK(second.policy.lr() == whole.policy.lr());
  }
}

}  // namespace

TEST_CASE("mixed precision: a resumed run is the uninterrupted one, masters and scale too", "[parallel]") {
  check_resume<optim::adam>({.lr = 1e-4});
  check_resume<optim::sgd>({.lr = 1e-3, .momentum = 0.9});
}

TEST_CASE("mixed precision: a file of another object, or damaged, changes nothing", "[parallel]") {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  run<optim::adam> saved(3, {.lr = 1e-4}), other(4, {.lr = 1e-2});
  saved.train(0, 6);
  other.train(0, 4);
  const std::string before = other.bits();
  optim::adam plain(other.model);
  file.save(saved.policy);
  CHECK_THROWS_WITH(file.load(plain), Contains("holds (mixed_precision)") && Contains("given (optimizer)"));
  file.save(optim::mixed_precision<optim::sgd>(saved.model));
  CHECK_THROWS_WITH(file.load(other.policy), Contains("use the optimizer that was saved"));
  file.save(optim::mixed_precision<optim::adam>(saved.model, {}, {.growth_interval = 4}));
  optim::mixed_precision<optim::adam> fewer(saved.model.get<0>());
  CHECK_THROWS_WITH(file.load(fewer), Contains("has 4 parameters, and the optimizer 2"));
  CHECK((other.bits() == before));
  CHECK(other.policy.lr() == Approx(1e-2 * std::pow(0.9, 4)));
}

TEST_CASE("mixed precision over ranks: each keeps the masters of its parameters, and the bits are the same",
          "[parallel][sharded]") {
  const auto train = [](network_type& model, auto& policy, auto& ranks) {
    for (index_t i = 0; i < 6; ++i) {
      policy.zero_grad();
      ranks.backward(policy.scale(loss_of(model, i) * (i == 0 ? 1e6f : 1)), 8);
      policy.clip_grad_norm(model, 0.5);
      require(policy.step() == (i != 0), "the first step is left out");
    }
    return bits_of(model);
  };
  std::string want;
  run_ranks(3, {}, [&](thread_communicator world) {
    network_type model = network(1);
    nn::distributed ranks(model, world);
    optim::mixed_precision<optim::adam> policy(model, {.lr = 1e-3});
    const std::string bits = train(model, policy, ranks);
    if (world.rank() == 0) want = bits;
  });
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    network_type model = network(static_cast<std::uint64_t>(world.rank() + 1));
    nn::distributed ranks(model, world);
    optim::mixed_precision<optim::sharded<optim::adam>> policy(ranks, {.lr = 1e-3});
    require(train(model, policy, ranks) == want, "the bits of a policy on each rank");
    policy.gather_state();
    if (world.rank() == 0) file.save(model, policy);
    world.barrier("saved").get();
  }));
  network_type model = network(5);
  optim::mixed_precision<optim::adam> policy(model);
  file.load(model, policy);  // as the optimizer itself does
  CHECK((bits_of(model) == want));
  CHECK(policy.lr() == 1e-3);
  CHECK(policy.scaler().get_scale() == 32768);
}

// tests/ranks/sharded_test.cpp: ranks that each keep a part of the optimizer's state, against one optimizer for all.
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <filesystem>

#include "../catch.hpp"
#include "communicator_checks.hpp"
#include "training_run.hpp"

using namespace sinter;
using communicator_checks::require;
using communicator_checks::require_text;

namespace {

using matrix = tensor<double, 2>;

/// Weights that two layers share, a layer that is used in some steps, one that never is, float beside double, a number,
/// and a matrix of 1 MiB that lies transposed in memory.
struct net : nn::module<net> {
  nn::linear<double> first, middle, last, sometimes, unused;
  variable<float, 1> scale;
  variable<double, 0> gain;
  variable<double, 2> large;

  explicit net(std::uint64_t seed) : net(generator(seed)) {}
  explicit net(generator gen)
      : first(5, 6, gen),
        middle(6, 6, gen),
        last(6, 3, gen),
        sometimes(6, 6, gen),
        unused(6, 6, gen),
        scale(ones<float>({6})),
        gain(full<double>(extents<0>{}, 0.5)),
        large(randn<double>(gen, {6, 1 << 15}).transpose(0, 1)) {}

  /// The sum of losses of n samples from `begin`.
  variable<double, 0> loss(index_t begin, index_t n, bool with_sometimes) const {
    matrix x = zeros<double>({n, 5});
    for (index_t i = 0; i < n * 5; ++i) x.data()[i] = std::sin(double(begin * 5 + i));
    variable<double, 2> h = tanh(middle(tanh(middle(tanh(first(x)))))) * cast<double>(scale);
    if (with_sometimes) h = h + sometimes(h);
    return mean(square(last(h)) * gain) + mean(square(large)) * 0.01;
  }
  SINTER_MEMBERS(first, middle, last, sometimes, unused, scale, gain, large);
};

/// Five steps with a schedule, clipped and scaled; the third overflows and is left out. after(step) follows each.
template <class Optimizer, class Backward, class After>
void train(net& model, Optimizer& optimizer, const Backward& backward, const After& after, int begin = 0, int end = 5) {
  optim::lr_scheduler scheduler(optimizer, optim::exponential_lr{0.8});
  optim::grad_scaler scaler({.init_scale = 1024});
  scheduler.set_epoch(begin);
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    backward(step, scaler);
    if (step == 2) {
      tensor g = model.gain.grad();
      g.in_place() = g / 0.;
    }
    scaler.unscale(optimizer);
    optim::clip_grad_norm(model, 0.5);
    require(scaler.step(optimizer) == (step != 2), "the third step is left out, the others are taken");
    scaler.update();
    scheduler.step();
    after(step);
  }
}

/// A layer with settings of its own.
template <class Optimizer>
void add_group(Optimizer& optimizer, const net& model) {
  optimizer.add_param_group(model.middle, [](auto& o) {
    o.lr *= 3;
    o.weight_decay = 0.1;
  });
}

/// The gradients of R ranks, as those sum them, and no more than one optimizer.
template <class Optimizer>
void train_on(thread_communicator world, const typename Optimizer::options_type& options, std::string& bits) {
  net model(1);
  nn::distributed ranks(model, world);
  Optimizer optimizer(model, options);
  add_group(optimizer, model);
  const auto backward = [&](int step, optim::grad_scaler& s) {
    ranks.backward(variable(s.scale(model.loss(step + world.rank(), 3, step == 1))), 3);
  };
  train(model, optimizer, backward, [&](int) { bits += bits_of(model); });
}

template <class Optimizer>
void check_bits(const typename Optimizer::options_type& options) {
  for (const int R : {1, 2, 3, 4}) {
    INFO(R << " ranks");
    std::string want;
    CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
      std::string bits;
      train_on<Optimizer>(world, options, bits);
      if (world.rank() == 0) want = bits;
    }));
    CHECK_NOTHROW(run_ranks(R, {}, [&](thread_communicator world) {
      net model(std::uint64_t(world.rank() + 1));
      nn::distributed ranks(model, world);
      optim::sharded<Optimizer> optimizer(ranks, options);
      add_group(optimizer, model);
      require(optimizer.lr(1) == 3 * options.lr && optimizer.options(1).weight_decay == 0.1, "settings of the group");
      bool refused = false;
      try {
        add_group(optimizer, net(9));
      } catch (const value_error&) {
        refused = optimizer.groups() == 2;
      }
      require(refused, "a group of another model is refused");
      std::string bits;
      const auto backward = [&](int step, optim::grad_scaler& s) {
        ranks.backward(variable(s.scale(model.loss(step + world.rank(), 3, step == 1))), 3);
      };
      train(model, optimizer, backward, [&](int) { bits += bits_of(model); });
      require(bits == want, "the bits of the optimizer that is not sharded");
    }));
  }
}

}  // namespace

TEST_CASE("sharded: the same bits as one optimizer for all", "[parallel][sharded]") {
  check_bits<optim::sgd>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  check_bits<optim::adam>({.lr = 0.01});
  check_bits<optim::adamw>({.lr = 0.01});
  check_bits<optim::rmsprop>({.lr = 0.01, .momentum = 0.5});
}

TEST_CASE("sharded: sizes are dealt out to the rank that has least", "[parallel][sharded]") {
  using optim::detail::deal_to_ranks;
  CHECK(deal_to_ranks({1, 7, 3, 3, 2}, 2) == std::vector<int>{0, 0, 1, 1, 1});
  CHECK(deal_to_ranks({4, 4, 4, 4}, 3) == std::vector<int>{0, 1, 2, 0});
  CHECK(deal_to_ranks({5}, 3) == std::vector<int>{0});
  CHECK(deal_to_ranks({}, 3).empty());
}

TEST_CASE("sharded: each rank keeps its part of the state only", "[parallel][sharded]") {
  constexpr index_t width = 1024;
  run_ranks(4, {}, [&](thread_communicator world) {
    generator gen(1);
    nn::sequential model{nn::linear(width, width, gen), nn::linear(width, width, gen), nn::linear(width, width, gen),
                         nn::linear(width, width, gen)};
    nn::distributed ranks(model, world);
    optim::sharded<optim::adam> optimizer(ranks);
    ranks.backward(variable(mean(model(ones<float>({1, width})))), 1);
    std::vector<int> owned(4);
    for (std::size_t i = 0; i < optimizer.size(); ++i) ++owned[std::size_t(optimizer.owner(i))];
    require(owned == std::vector<int>{2, 2, 2, 2}, "a matrix and a vector for each");
    for (int turn = 0; turn < 2; ++turn) {  // the first step makes the state; the second needs no more
      world.barrier("before the step").get();
      const auto before = memory<cpu>().bytes_in_use;
      world.barrier("all have looked").get();
      optimizer.step();
      world.barrier("after the step").get();
      const auto now = memory<cpu>().bytes_in_use;
      world.barrier("all have looked").get();
      constexpr std::size_t moments = 4 * 2 * (width * width + width) * 4;  // of all ranks: as of one without sharding
      if (turn == 0) require(now - before >= moments && now - before < moments + moments / 50, "bytes of all ranks");
      else require(now - before < moments / 50, "bytes of the second step");
    }
    optimizer.zero_grad();
    const double busy = world.time_spent().under_way;
    optimizer.step();
    require(world.time_spent().under_way == busy, "parameters without a gradient are not sent");
  });
}

namespace {

struct two_layers : nn::module<two_layers> {
  nn::linear<double> a, b;
  explicit two_layers(generator gen) : a(4, 5, gen), b(5, 3, gen) {}
  SINTER_MEMBERS(a, b);
};
/// Gradients without any sum.
void give_gradients(const two_layers& m, int step, bool with_b) {
  const matrix x = full<double>({2, 4}, 0.3 * (step + 1));
  variable<double, 2> h = tanh(m.a(x));
  if (with_b) h = m.b(h);
  variable(mean(square(h))).backward();
}

}  // namespace

TEST_CASE("sharded: tasks of which a step uses some", "[parallel][sharded]") {
  const auto run = [](thread_communicator world, const auto& step_with) {
    generator gen(1);
    nn::offloaded<numa<0>, nn::linear<double>> heads(5, [&](index_t) { return nn::linear<double>(4, 2, gen); },
                                                     {.copies = 2});
    nn::distributed ranks(heads, world);
    return step_with(heads, ranks, [&](auto& optimizer, index_t task) {
      optimizer.zero_grad();
      const auto head = heads.fetch(task);
      const variable<double, 2, numa<0>> y = head(full<double, numa<0>>({3, 4}, world.rank() + 1.));
      variable<double, 0, numa<0>> l = mean(square(y));
      ranks.backward(l, 3);
      optimizer.step();
    });
  };
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    const auto train = [&](auto& heads, auto& optimizer, const auto& step) {
      step(optimizer, world.rank() == 0 ? 2 : 4);
      step(optimizer, 4);
      return bits_of(heads);
    };
    const std::string want = run(world, [&](auto& heads, auto&, const auto& step) {
      optim::adam optimizer(heads);
      return train(heads, optimizer, step);
    });
    const std::string bits = run(world, [&](auto& heads, auto& ranks, const auto& step) {
      optim::sharded<optim::adam> optimizer(ranks);
      return train(heads, optimizer, step);
    });
    require(bits == want, "the bits of the optimizer that is not sharded");
  }));
}

TEST_CASE("sharded: a checkpoint of 4 ranks goes on with 2 ranks, and with an optimizer that is not sharded",
          "[parallel][sharded]") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_sharded.ckpt").string();
  std::filesystem::remove(path);
  const run_checkpoint file(path);
  std::string want;
  {
    two_layers plain{generator(1)};
    optim::adam optimizer(plain, {.lr = 0.01});
    for (int step = 0; step < 9; ++step) {
      optimizer.zero_grad();
      give_gradients(plain, step, step >= 4);  // b has no state when it is saved first
      optimizer.step();
      if (step == 3) optimizer.set_lr(0.02);
    }
    want = bits_of(plain);
  }
  const auto go_on = [&](auto& model, auto& optimizer, int begin, int end) {
    for (int step = begin; step < end; ++step) {
      optimizer.zero_grad();
      give_gradients(model, step, step >= 4);
      optimizer.step();
      if (step == 3) optimizer.set_lr(0.02);
    }
  };
  CHECK_NOTHROW(run_ranks(4, {}, [&](thread_communicator world) {
    two_layers model{generator(1)};
    nn::distributed ranks(model, world);
    optim::sharded<optim::adam> optimizer(ranks, {.lr = 0.01});
    go_on(model, optimizer, 0, 4);
    const auto refused = [&](const std::string& text) {
      try {
        file.save(model, optimizer);
      } catch (const value_error& e) {
        return std::string(e.what()).find(text) != std::string::npos;
      }
      return false;
    };
    require(refused("call gather_state() on all ranks"), "a save without gather_state()");
    optimizer.gather_state();
    if (world.rank() > 0) require(refused("rank 0 does, so save there"), "a save on another rank");
    else file.save(model, optimizer);
    world.barrier("saved").get();
    optimizer.step();
    require(refused("call gather_state() on all ranks"), "a save of the state of an earlier step");
  }));
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    two_layers model{generator(2)};
    nn::distributed ranks(model, world);
    optim::sharded<optim::adam> optimizer(ranks);
    file.load(model, optimizer);
    require(optimizer.lr() == 0.02, "the learning rate");
    go_on(model, optimizer, 4, 7);
    optimizer.gather_state();
    if (world.rank() == 0) file.save(model, optimizer);
    world.barrier("saved").get();
    go_on(model, optimizer, 7, 9);
    require(bits_of(model) == want, "2 ranks go on as without ranks");
    file.load(model, optimizer);  // back, also where there is a state already
    go_on(model, optimizer, 7, 9);
    require(bits_of(model) == want, "and from the second file");
  }));
  two_layers plain{generator(2)};
  optim::adam optimizer(plain);
  file.load(plain, optimizer);
  go_on(plain, optimizer, 7, 9);
  CHECK(bits_of(plain) == want);
  file.save(plain, optimizer);
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    two_layers model{generator(2)};
    nn::distributed ranks(model, world);
    optim::sharded<optim::adam> sharded(ranks);
    file.load(model, sharded);
    sharded.gather_state();
    if (world.rank() != 0) return;
    for (const auto& m : optimizer.saved_members()) {
      const auto a = optimizer.saved_value(m), b = sharded.saved_value(m);
      require(a && b && std::equal(a->bytes.begin(), a->bytes.end(), b->bytes.begin(), b->bytes.end()), m.name);
    }
  }));
  std::filesystem::remove(path);
}

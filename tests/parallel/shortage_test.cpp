// tests/parallel/shortage_test.cpp: steps of training in which memory runs out, at any allocation, one after the other
// of all ways to run a model: a step that throws has changed nothing, and done again it is as if nothing had been.
#include "../shortage.hpp"

#include <sinter/data.hpp>
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "../catch.hpp"
#include "../watchdog.hpp"

using namespace sinter;

namespace {

/// The bits of all that training changes: parameters, gradients, buffers, generators, and what the optimizer keeps.
template <class M, class Optimizer>
std::string state_of(M& model, const Optimizer& optimizer) {
  std::string all;
  const auto add = [&all](const void* from, std::size_t n) { all.append(static_cast<const char*>(from), n); };
  for (const auto& e : nn::state(model)) add(e.value.bytes.data(), e.value.bytes.size());
  model.for_each_parameter([&](const auto&, const auto& p) {
    all += p.has_grad() ? '1' : '0';
    if (!p.has_grad()) return;
    const host_tensor g(p.grad());
    add(g.bytes.data(), g.bytes.size());
  });
  nn::detail::for_each_generator(model, [&](const auto&, const generator& g) {
    const std::uint64_t words[] = {g.seed(), g.offset()};
    add(words, sizeof words);
  });
  for (const auto& m : optimizer.saved_members())
    if (const auto value = optimizer.saved_value(m)) add(value->bytes.data(), value->bytes.size());
  return all;
}

struct one_thread {
  one_thread() { set_num_threads(1); }
  ~one_thread() { set_num_threads(before); }
  int before = num_threads();
};

/// What the ways of running a model have in common. Way says make(generator), how the model is made, and
/// pass(model, x, y), one forward and backward.
template <class Way>
struct training {
  generator gen{5};
  tensor<float, 4> x = randn<float>(gen, {5, 2, 6, 6});
  tensor<std::int64_t, 1> y = {0, 2, 1, 1, 0};
  typename Way::model model = Way::make(gen);
  Way way = made();
  optim::adam optimizer{model, {.lr = 0.05}};

  void step() {
    {
      nn::undo_on_error changes;
      way.pass(model, x, y);
      optimizer.step();
    }
    optimizer.zero_grad();
  }
  std::string state() { return state_of(model, optimizer); }

 private:
  Way made() {
    if constexpr (std::is_constructible_v<Way, typename Way::model>) return Way(model);
    else return {};
  }
};

/// Repeats step(), each time with another of its allocations failing, until none does: of the first step, and of a
/// later one with gradients of an earlier pass.
template <class Way>
void check_each_failure(const char* name, long at_least = 20) {
  const one_thread only;
  for (const bool is_first : {true, false}) {
    const auto prepare = [&](training<Way>& t) {
      if (is_first) return;
      t.step();
      t.way.pass(t.model, t.x, t.y);
    };
    training<Way> reference;
    prepare(reference);
    const std::string before = reference.state();
    reference.step();
    const std::string after = reference.state();
    for (const bool all : {false, true}) {
      INFO(name << (is_first ? ", the first step" : ", a later step") << (all ? ", from there on" : ", once"));
      watchdog dog(name);
      long tried = 0, failed = 0, changed = 0, differs = 0, leaked = 0;
      for (auto last = shortage::outcome::failed; last != shortage::outcome::untouched;) {
        dog.at(tried);
        const auto held_before = shortage::held();
        const auto point = [&] {
          training<Way> t;
          prepare(t);
          last = shortage::with_failure(tried, all, [&] { t.step(); });
          if (last == shortage::outcome::failed) {
            ++failed;
            changed += t.state() != before;
            t.step();
          }
          differs += t.state() != after;
        };
        point();
        // Lists of arenas grow once for each size, whichever thread comes first, and a thread may still let go of what
        // it held. What leaks grows each time.
        auto held_last = held_before;
        bool leaks = true;
        for (int again = 0; again < 5 && leaks; ++again) {
          const auto held_now = shortage::held();
          leaks = held_now.first > held_last.first || held_now.second > held_last.second;
          held_last = held_now;
          if (leaks && again < 4) point();
        }
        leaked += leaks;
        ++tried;
      }
      CHECK(failed >= at_least);
      CHECK(changed == 0);
      CHECK(differs == 0);
      CHECK(leaked == 0);
    }
  }
}

template <class M, class X, class Y>
void pass_plainly(const M& model, const X& x, const Y& y) {
  variable loss = cross_entropy(model(x), y);
  loss.backward();
}

template <class D = cpu>
auto head(generator& gen) {
  return nn::sequential{nn::flatten(), nn::dropout(0.3, gen), nn::linear<float, D>(72, 3, gen)};
}
template <class D = cpu>
auto features(generator& gen) {
  return nn::sequential{nn::conv2d<float, D>(2, 2, 3, gen, {.padding = 1}), nn::batch_norm2d<float, D>(2), nn::relu(),
                        nn::conv2d<float, D>(2, 2, 3, gen, {.padding = 1}), nn::batch_norm2d<float, D>(2)};
}
auto network(generator& gen) {
  auto first = features(gen);
  auto last = head(gen);
  return nn::sequential{first, nn::relu(), last};
}

struct plainly {
  using model = decltype(network(std::declval<generator&>()));
  static model make(generator& gen) { return network(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(m, x, y);
  }
};

auto layers(generator& gen) {
  return nn::sequential{nn::flatten(), nn::linear(72, 8, gen), nn::relu(), nn::linear(8, 3, gen)};
}
struct without_buffers {
  using model = decltype(layers(std::declval<generator&>()));
  static model make(generator& gen) { return layers(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(m, x, y);
  }
};

struct in_data_parallel {
  using model = plainly::model;
  static model make(generator& gen) { return network(gen); }
  explicit in_data_parallel(const model& m) : over(m) {}
  void pass(const model&, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    over.backward(x, y, [](const auto& scores, const auto& labels) { return cross_entropy(scores, labels); });
  }
  nn::data_parallel_over<model, numa<0>, numa<1>> over;
};
struct called_data_parallel {
  using model = plainly::model;
  static model make(generator& gen) { return network(gen); }
  explicit called_data_parallel(const model& m) : over(m) {}
  void pass(const model&, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(over, x, y);
  }
  nn::data_parallel_over<model, numa<0>, numa<1>> over;
};

auto tiled(generator& gen) {
  auto first = features(gen);
  auto last = head(gen);
  return nn::sequential{nn::tile_parallel<nn::tiles<2, 1, numa<0>, numa<1>>>(first), nn::relu(), last};
}
struct in_tiles {
  using model = decltype(tiled(std::declval<generator&>()));
  static model make(generator& gen) { return tiled(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(m, x, y);
  }
};

auto stages(generator& gen) {
  auto first = features<cpu>(gen);
  auto last = head<cpu>(gen);
  return nn::pipeline{first, last.to<numa<1>>()};
}
struct in_a_pipeline {
  using model = decltype(stages(std::declval<generator&>()));
  static model make(generator& gen) { return stages(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    m.step(x, y, [](const auto& scores, const auto& labels) { return cross_entropy(scores, labels); },
           {.microbatches = 2});
  }
};

auto split(generator& gen) { return nn::placed<nn::cut<0, cpu>, nn::cut<2, numa<1>>>(network(gen)); }
struct placed_over_two {
  using model = decltype(split(std::declval<generator&>()));
  static model make(generator& gen) { return split(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(m, x, y.to<numa<1>>());
  }
};

using tasks = nn::offloaded<numa<1>, plainly::model>;
struct from_offload {
  using model = tasks;
  static model make(generator& gen) {
    return tasks(2, [&] { return network(gen); }, {.copies = 2});
  }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    m.prefetch(1);
    pass_plainly(m.fetch(0), x.to<numa<1>>(), y.to<numa<1>>());
  }
};

auto checkpoints(generator& gen) {
  auto first = features(gen);
  auto last = head(gen);
  return nn::sequential{nn::checkpointed(first), nn::relu(), nn::checkpointed(last)};
}
struct from_checkpoints {
  using model = decltype(checkpoints(std::declval<generator&>()));
  static model make(generator& gen) { return checkpoints(gen); }
  void pass(const model& m, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) const {
    pass_plainly(m, x, y);
  }
};

/// The labels of an epoch's batches, in their order.
using labels = std::vector<std::int64_t>;
template <class Loader>
void take_epoch(Loader& loader, labels& to) {
  for (auto& [x, y] : loader)
    for (index_t i = 0; i < y.numel(); ++i) to.push_back(y(i));
}

}  // namespace

TEST_CASE("a loader that runs out of memory goes on where it was", "[shortage]") {
  const tensor_dataset set(arange<float>(0.f, 7.f), arange<std::int64_t>(0, 7));
  for (const int prefetch : {0, 2}) {
    const auto make = [&] { return data_loader(set, {.batch_size = 2, .shuffle = true, .prefetch = prefetch}); };
    labels epoch;
    auto reference = make();
    take_epoch(reference, epoch);
    for (const bool all : {false, true}) {
      CAPTURE(prefetch, all);
      watchdog dog("data_loader");
      long tried = 0, failed = 0, wrong = 0;
      for (auto last = shortage::outcome::failed; last != shortage::outcome::untouched; ++tried) {
        dog.at(tried);
        auto loader = make();
        labels seen;
        seen.reserve(16);
        last = shortage::with_failure(tried, all, [&] { take_epoch(loader, seen); });
        if (last == shortage::outcome::failed) {
          ++failed;
          wrong += seen.empty() && loader.epoch() != 0;
          loader.set_position(loader.position());
          take_epoch(loader, seen);
        }
        wrong += seen != epoch;
      }
      CHECK(failed > (prefetch == 0 ? 5 : 0));  // of a thread that fetches ahead, it depends on how far that has come
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a step without buffers that runs out of memory is undone", "[shortage]") {
  check_each_failure<without_buffers>("linear layers");
}
TEST_CASE("a step with batch norms and dropout that runs out of memory is undone", "[shortage]") {
  check_each_failure<plainly>("convolutions");
}
TEST_CASE("a step of data_parallel that runs out of memory is undone", "[shortage]") {
  check_each_failure<in_data_parallel>("data_parallel.backward");
  check_each_failure<called_data_parallel>("data_parallel");
}
TEST_CASE("a step of tile_parallel that runs out of memory is undone", "[shortage]") {
  check_each_failure<in_tiles>("tile_parallel");
}
TEST_CASE("a step of a pipeline that runs out of memory is undone", "[shortage]") {
  check_each_failure<in_a_pipeline>("pipeline");
}
TEST_CASE("a step of placed that runs out of memory is undone", "[shortage]") {
  check_each_failure<placed_over_two>("placed");
}
TEST_CASE("a step of an offloaded task that runs out of memory is undone", "[shortage]") {
  check_each_failure<from_offload>("offloaded");
}
TEST_CASE("a step of checkpoints that runs out of memory is undone", "[shortage]") {
  check_each_failure<from_checkpoints>("checkpoint");
}

namespace {

struct embedded : nn::module<embedded> {
  nn::linear<half> first;
  nn::linear<bfloat16> second;
  variable<half, 2> table = row_sparse(ones<half>({6, 2}));
  explicit embedded(generator gen) : first(4, 3, gen), second(3, 2, gen) {}
  SINTER_MEMBERS(first, second, table);
};
struct policy_run {
  embedded model{generator(3)};
  optim::mixed_precision<optim::adagrad> policy{model, {.lr = 0.01}, {.init_scale = 256, .growth_interval = 2}};
  void pass() const {
    const variable h = model.second(cast<bfloat16>(model.first(ones<half>({2, 4}))));
    policy.backward(sum(cast<float>(h)) + sum(cast<float>(embedding(tensor<std::int64_t, 1>{1, 4}, model.table))));
  }
  /// Not its gradients: grad() would make those of the table dense.
  std::string state() const {
    std::string all;
    const auto add = [&all](const host_tensor& x) {
      all.append(reinterpret_cast<const char*>(x.bytes.data()), x.bytes.size());
    };
    for (const auto& e : nn::state(model)) add(e.value);
    for (const auto& m : policy.saved_members())
      if (const auto value = policy.saved_value(m)) add(*value);
    const optim::grad_scaler::state_type scale = policy.scaler().state();
    return all + std::to_string(scale.scale) + std::to_string(scale.good_updates);
  }
};

}  // namespace

TEST_CASE("a step of mixed precision that runs out of memory is undone, masters and scale too", "[shortage]") {
  const one_thread only;
  for (const bool is_first : {true, false})
    for (const bool all : {false, true}) {
      const auto prepare = [&](policy_run& r) {
        r.pass();
        if (is_first) return;
        r.policy.step();
        r.policy.zero_grad();
        r.pass();
      };
      policy_run reference;
      prepare(reference);
      const std::string before = reference.state();
      REQUIRE(reference.policy.step());
      const std::string after = reference.state();
      long tried = 0, failed = 0;
      for (auto last = shortage::outcome::failed; last != shortage::outcome::untouched; ++tried) {
        policy_run r;
        prepare(r);
        last = shortage::with_failure(tried, all, [&] { r.policy.step(); });
        INFO((is_first ? "first step" : "later step") << (all ? ", from allocation " : ", allocation ") << tried);
        if (last == shortage::outcome::failed) {
          ++failed;
          CHECK((r.state() == before));
          CHECK(r.policy.step());
        }
        CHECK((r.state() == after));
      }
      CHECK(failed >= 5);
    }
}

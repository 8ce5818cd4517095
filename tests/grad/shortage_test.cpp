// tests/grad/shortage_test.cpp: a training step in which memory runs out, at any allocation, of the heap or for an
// arena.
#include "../shortage.hpp"

#include <sinter/sinter.hpp>

#include <thread>
#include <utility>
#include <vector>

#include "../catch.hpp"
#include "../same_bits.hpp"

using namespace sinter;

namespace {

/// A model with a node of every kind in its graph.
struct training {
  generator gen{5};
  tensor<float, 2> inputs = randn<float>(gen, {6, 8});
  tensor<std::int64_t, 1> labels = {0, 3, 1, 2, 2, 0};
  tensor<std::int64_t, 1> rows = {1, 0, 1, 3, 4, 5};
  nn::linear<float, cpu> first{8, 16, gen}, second{32, 4, gen};
  optim::adam optimizer{std::vector{first.weight, second.weight}, {.lr = 0.1}};
  gradient_listener listener;
  int told = 0;

  training() {
    optimizer.add(first.bias), optimizer.add(second.bias);
    const auto count = [this] { ++told; };
    listener.add(first.weight, count), listener.add(first.bias, count);
    listener.add(second.weight, count), listener.add(second.bias, count);
  }

  variable<float, 0> loss() const {
    const variable h = relu(first(inputs));
    const variable wide = concat(1, h, h.flip(1));
    const variable shown = index_select(layer_norm(wide), 0, rows);
    const variable scores = second(shown);
    const variable extra = sum(let(cumsum(softmax(scores, 1), 1), [](const auto& s) { return s * s; }));
    const variable there = eval(mean(square(h))).to<numa<3>>();
    return mean(cross_entropy(scores, labels)) + extra * 0.1f + there.to<cpu>();
  }
  void pass() const { loss().backward(); }
  void pass_with_listener() { loss().backward(listener); }
  void step() {
    try {
      pass();
      optimizer.step();
    } catch (...) {
      optimizer.zero_grad();
      throw;
    }
    optimizer.zero_grad();
  }
  std::vector<float> numbers() const {
    std::vector<float> all;
    const auto add = [&all](const auto& v) {
      const auto value = v.value(), g = v.has_grad() ? v.grad() : zeros_like(v.value());
      all.insert(all.end(), value.data(), value.data() + value.numel());
      all.insert(all.end(), g.data(), g.data() + g.numel());
      all.push_back(v.has_grad());
    };
    add(first.weight), add(first.bias);
    add(second.weight), add(second.bias);
    return all;
  }
};

struct one_thread {
  one_thread() { set_num_threads(1); }
  ~one_thread() { set_num_threads(before); }
  int before = num_threads();
};

/// Repeats `work`, each time with another of its allocations failing, until none does. It must then end in `after`, or
/// leave `before` as it was, and end in `after` at the next attempt; and nothing leaks.
template <class Prepare, class Work>
void check_each_failure(bool all, const Prepare& prepare, const Work& work) {
  training reference;
  prepare(reference);
  const auto before = reference.numbers();
  work(reference);
  const auto after = reference.numbers();
  long tried = 0, failed = 0, wrong = 0, leaked = 0;
  for (shortage::outcome last = shortage::outcome::failed; last != shortage::outcome::untouched;) {
    const auto held_before = shortage::held();
    {
      training t;
      prepare(t);
      last = shortage::with_failure(tried++, all, [&] { work(t); });
      if (last == shortage::outcome::failed) {
        ++failed;
        wrong += t.numbers() != before;
        work(t);
      }
      wrong += t.numbers() != after;
    }
    leaked += tried > 1 && shortage::held() != held_before;  // in the first the arenas' lists grow
  }
  CHECK(failed > 50);
  CHECK(wrong == 0);
  CHECK(leaked == 0);
}

}  // namespace

TEST_CASE("a training step that runs out of memory changes nothing, leaks nothing, and can be repeated", "[shortage]") {
  const one_thread only;
  for (const bool all : {false, true}) {
    check_each_failure(all, [](training&) {}, [](training& t) { t.step(); });
    check_each_failure(all, [](training& t) { t.step(); }, [](training& t) { t.step(); });
  }
}

TEST_CASE("a backward that runs out of memory does not touch the gradients of earlier ones", "[shortage]") {
  const one_thread only;
  for (const bool all : {false, true})
    check_each_failure(all, [](training& t) { t.pass(); }, [](training& t) { t.pass(); });
  for (const bool all : {false, true})
    check_each_failure(all, [](training& t) { t.pass(); }, [](training& t) { t.pass_with_listener(); });
}

TEST_CASE("a step of tables whose gradients are held by rows runs out of memory", "[shortage]") {
  const one_thread only;
  const tensor<std::int64_t, 1> list{3, 1, 3};
  struct tables {
    generator gen{7};
    nn::embedding<> first{6, 4, gen, {.sparse = true}}, second{6, 4, gen, {.sparse = true}};
    optim::adagrad optimizer{first, {.lr = 0.1}};
    tables() { optimizer.add(second); }
    bool same_as(const tables& o) const {
      return same_bits(first.weight.value(), o.first.weight.value()) &&
             same_bits(second.weight.value(), o.second.weight.value()) &&
             first.weight.has_grad() == o.first.weight.has_grad();
    }
  };
  const auto step = [&](tables& t) {
    try {
      for (int pass = 0; pass < 2; ++pass)
        variable(sum(square(t.first(list))) + sum(square(t.second(list)))).backward();
      t.optimizer.step();
    } catch (...) {
      t.optimizer.zero_grad();
      throw;
    }
    t.optimizer.zero_grad();
  };
  tables before, after;
  step(after);
  for (const bool all : {false, true}) {
    long tried = 0, failed = 0;
    for (auto last = shortage::outcome::failed; last != shortage::outcome::untouched;
         failed += last == shortage::outcome::failed) {
      tables t;
      last = shortage::with_failure(tried++, all, [&] { step(t); });
      if (last != shortage::outcome::failed) continue;
      REQUIRE(t.same_as(before));
      step(t);
      REQUIRE(t.same_as(after));
    }
    CHECK(failed > 30);
  }
}

TEST_CASE("a graph of many statements is freed without memory", "[shortage]") {
  variable y = ones<float>({3});
  const variable x = y;
  for (int i = 0; i < 1000; ++i) y = y * x + x;
  const shortage::period now(0, true);
  y = x;
  CHECK(y.is_leaf());
}

TEST_CASE("a pool whose threads found no memory starts them when there is some", "[shortage]") {
  const auto ran = [](cpu_impl::thread_pool& pool) {
    std::atomic<int> n{0};
    pool.parallel_for(10, [&](index_t) { ++n; });
    return n == 10;
  };
  for (int k = 0; k < 8; ++k) {
    cpu_impl::thread_pool pool(3);
    bool done = false;
    {
      const shortage::period now(k, true);
      done = ran(pool);
    }
    CHECK(done);
    CHECK(pool.size() == 3);
    std::atomic<int> inside{0};
    pool.parallel_for(3, [&](index_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
    });
  }
}

TEST_CASE("an arena in which any allocation fails loses no block", "[shortage]") {
  using arena_type = sinter::detail::caching_arena<sinter::detail::host_memory>;
  constexpr std::size_t kib = 1024;
  long tried = 0;
  for (long failed = 1; failed > 0; ++tried) {
    arena_type arena("shortage test");
    const auto before = shortage::failures.load();
    std::vector<std::pair<void*, std::size_t>> blocks;
    blocks.reserve(100);
    const auto take = [&](std::size_t bytes) {
      try {
        blocks.emplace_back(arena.allocate(bytes), bytes);
      } catch (const std::bad_alloc&) {
      } catch (const out_of_memory&) {
      }
    };
    const auto give_all = [&] {
      for (const auto& [p, bytes] : blocks) arena.release(p, bytes);
      blocks.clear();
    };
    arena.set_allowance(0);
    {
      const shortage::period now(tried, false);
      for (const std::size_t n : {4000u, 3000u, 2600u, 2200u, 1900u}) take(n * kib), give_all();  // larger blocks serve
      const int number = arena.open_reserve();
      take(100 * kib), take(60 * kib);
      give_all();
      take(60 * kib);
      arena.close_reserve();
      take(60 * kib);
      give_all();
      arena.drop_reserve(number);
    }
    const memory_stats s = arena.stats();
    CHECK(s.bytes_in_use == 0);
    CHECK(s.bytes_reserved == 0);
    CHECK(s.bytes_cached == s.bytes_held);
    failed = shortage::failures - before;
    arena.empty_cache();
    CHECK(arena.stats().bytes_held == 0);
    CHECK(arena.stats().system_allocations == arena.stats().system_frees);
  }
  CHECK(tried > 15);
}

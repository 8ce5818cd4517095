// tests/ranks/shortage_test.cpp: ranks that are threads train a model, and memory runs out at any allocation of any of
// them: every rank ends, with an error or well, and other ranks can begin.
#include "../shortage.hpp"

#include <unistd.h>

#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../catch.hpp"
#include "../watchdog.hpp"

using namespace sinter;
using namespace std::chrono_literals;

namespace {

using model = nn::sequential<nn::linear<float>, nn::batch_norm1d<float>, nn::relu, nn::linear<float>>;

model make_model() {
  generator gen(5);
  return model{nn::linear(4, 6, gen), nn::batch_norm1d<float>(6), nn::relu(), nn::linear(6, 3, gen)};
}

/// Two steps of training of one rank; the parameters and buffers after them.
std::vector<float> train(thread_communicator& world) {
  const model m = make_model();
  generator gen(7 + static_cast<std::uint64_t>(world.rank()));
  const tensor x = randn<float>(gen, {6, 4});
  const tensor<std::int64_t, 1> y{0, 2, 1, 1, 0, 2};
  nn::distributed ranks(m, world, {.bucket_bytes = 128, .first_bucket_bytes = 64});
  optim::adam optimizer(m, {.lr = 0.05});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    ranks.backward(variable(cross_entropy(m(x), y)), x.extent(0));
    optimizer.step();
  }
  std::vector<float> all;
  const auto add = [&all](const auto&, const auto& p) {
    const auto value = p.value().contiguous();
    all.insert(all.end(), value.data(), value.data() + value.numel());
  };
  m.for_each_parameter(add);
  m.for_each_buffer([&]<class X>(const std::string& name, const X& b) {
    if constexpr (std::is_same_v<element_of<X>, float>) add(name, b);
  });
  return all;
}

/// What each of two ranks has after training.
std::vector<std::vector<float>> train_ranks() {
  std::vector<std::vector<float>> each(2);
  run_ranks(2, {.timeout = 20s}, [&](thread_communicator world) {
    std::vector<float> all = train(world);
    each[static_cast<std::size_t>(world.rank())] = std::move(all);
  });
  return each;
}

/// A call of each kind; true where all give what they should.
template <class C>
bool call_all(C world) {
  const float mine = static_cast<float>(world.rank() + 1);
  const int other = 1 - world.rank();
  bool good = world.all_reduce(tensor<float, 1>{mine, mine}).get()(1) == 3;
  auto sent = world.send(tensor<float, 1>{mine}, other);
  auto received = world.template receive<float>(1, other);
  good = world.broadcast(tensor<float, 1>{mine}, 1).get()(0) == 2 && good;
  good = world.all_gather(tensor<float, 1>{mine}).get()(1) == 2 && good;
  good = world.reduce_scatter(tensor<float, 1>{mine, mine}).get()(0) == 3 && good;
  good = received.get()(0) == 3 - mine && good;
  sent.get();
  C half = world.split(world.rank(), 0);
  good = half.all_reduce(tensor<float, 1>{mine}).get()(0) == mine && good;
  world.barrier().get();
  return good;
}

/// f(rank) for two ranks, each on a thread. What one throws first is thrown.
template <class F>
void on_two_threads(const F& f) {
  std::exception_ptr failures[2];
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      try {
        f(r);
      } catch (...) {
        failures[r] = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

/// Lets each allocation of f(communicator) fail, on two ranks that make() connects before.
template <class Make, class F>
void check_each_failure(const char* name, const Make& make, const F& f) {
  for (const bool all : {false, true}) {
    INFO(name << (all ? ", from there on" : ", once"));
    watchdog dog(name);
    long failed = 0, wrong = 0, tried = 0;
    for (auto last = shortage::outcome::failed; last != shortage::outcome::untouched; ++tried) {
      dog.at(tried);
      auto world = make();
      std::optional<std::remove_cvref_t<decltype(world[0])>> mine[2];
      for (std::size_t r = 0; r < 2; ++r) mine[r] = std::move(world[r]);
      world.clear();
      // The threads begin before memory is short.
      std::atomic<int> here{0};
      std::atomic<bool> go{false};
      bool good[2] = {};
      std::exception_ptr failure;
      std::thread ranks([&] {
        try {
          on_two_threads([&](int r) {
            auto one = std::move(*std::exchange(mine[r], std::nullopt));
            ++here;
            while (!go) std::this_thread::yield();
            good[r] = f(std::move(one));
          });
        } catch (...) {
          failure = std::current_exception();
        }
      });
      while (here < 2) std::this_thread::yield();
      last = shortage::with_failure(tried, all, [&] {
        go = true;
        ranks.join();
        if (failure) throw std::bad_alloc();
      });
      if (last == shortage::outcome::failed) ++failed;
      else wrong += !(good[0] && good[1]);
    }
    CHECK(failed > 20);
    CHECK(wrong == 0);
  }
}

struct one_thread {
  one_thread() { set_num_threads(1); }
  ~one_thread() { set_num_threads(before); }
  int before = num_threads();
};

}  // namespace

TEST_CASE("ranks that run out of memory end, leak nothing, and others can begin", "[shortage]") {
  const one_thread only;
  const auto expected = train_ranks();
  for (const bool all : {false, true}) {
    CAPTURE(all);
    watchdog dog("distributed");
    long failed = 0, wrong = 0, leaked = 0, tried = 0;
    auto last = shortage::outcome::failed;
    for (; last != shortage::outcome::untouched; ++tried) {
      dog.at(tried);
      const auto held_before = shortage::held();
      {
        std::vector<std::vector<float>> reached;
        last = shortage::with_failure(tried, all, [&] {
          try {
            reached = train_ranks();
          } catch (const communication_error&) {
            throw std::bad_alloc();
          }
        });
        if (last == shortage::outcome::failed) ++failed;
        else wrong += reached != expected;
      }
      leaked += tried > 0 && shortage::held() != held_before;  // in the first the arenas' lists grow
      wrong += tried % 16 == 0 && train_ranks() != expected;
    }
    CHECK(failed > 50);
    CHECK(wrong == 0);
    CHECK(leaked == 0);
  }
}

TEST_CASE("calls over threads, nodes and sockets that run out of memory end", "[shortage]") {
  const one_thread only;
  const auto threads = [] { return thread_communicator::make(2, {.timeout = 20s}); };
  check_each_failure("threads", threads, [](thread_communicator world) { return call_all(std::move(world)); });
  check_each_failure("hierarchical", threads, [](thread_communicator world) {
    return call_all(hierarchical_communicator(std::move(world), 1));
  });
  ::setenv("SINTER_COMM_SECRET", "0123456789abcdef", 1);
  char folder[] = "/tmp/sinter_shortage_XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string place = "unix:" + std::string(folder) + "/s";
  const auto sockets = [&] {
    std::optional<socket_communicator> made[2];
    on_two_threads(
        [&](int r) { made[r].emplace(socket_options{.rank = r, .size = 2, .address = place, .timeout = 20s}); });
    std::vector<socket_communicator> world;
    for (auto& one : made) world.push_back(std::move(*one));
    return world;
  };
  check_each_failure("sockets", sockets, [](socket_communicator world) { return call_all(std::move(world)); });
  ::rmdir(folder);
}

// tests/ranks/shortage_test.cpp: ranks that are threads train a model, and memory runs out at any allocation of any of
// them: every rank ends, with an error or well, and other ranks can begin.
#include "../shortage.hpp"

#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

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

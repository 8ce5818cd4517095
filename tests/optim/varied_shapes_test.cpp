// tests/optim/varied_shapes_test.cpp: how much memory training keeps, with shapes that vary and with fixed ones.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <random>

using namespace sinter;

namespace {

using D = numa<11>;

void check_bound() {
  const memory_stats s = memory<D>();
  const std::size_t more = std::max<std::size_t>(s.peak_bytes, 1 << 20);
  if (s.bytes_in_use + s.bytes_cached > s.peak_bytes + more)
    FAIL("cached: " << s.bytes_cached << ", the most in use was " << s.peak_bytes);
}

struct image_training {
  generator gen{1};
  nn::conv2d<float, D> first{3, 8, 3, gen, {.padding = 1}}, second{8, 16, 3, gen, {.padding = 1}};
  nn::batch_norm2d<float, D> norm{8};
  optim::sgd optimizer{std::vector{first.weight, second.weight}, {.lr = 1e-4}};

  void step(index_t count, index_t side) {
    const auto x = full<float, D>({count, 3, side, side}, 0.5f);
    const variable loss = mean(square(second(max_pool2d(relu(norm(first(x))), 2))));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
};

/// Attention over the words of a text.
struct text_training {
  generator gen{1};
  nn::linear<float, D> queries{16, 16, gen}, keys{16, 16, gen}, values{16, 16, gen};
  optim::sgd optimizer{std::vector{queries.weight, keys.weight, values.weight}, {.lr = 1e-4}};

  void step(index_t words) {
    const auto x = full<float, D>({words, 16}, 0.5f);
    const variable k = keys(x);
    const variable shares = softmax(matmul(queries(x), k.transpose(0, 1)), 1);
    const variable loss = mean(square(matmul(shares, values(x))));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
};

}  // namespace

TEST_CASE("what training keeps of freed memory stays within the bound, whatever the shapes", "[memory]") {
  std::mt19937 random(1);
  const auto from = [&](index_t first, index_t last) {
    return first + static_cast<index_t>(random() % static_cast<unsigned>(last - first + 1));
  };
  {
    image_training t;
    for (int i = 0; i < 300; ++i) t.step(from(1, 7), from(8, 36)), check_bound();
    for (index_t i = 0; i < 100; ++i) t.step(4, 8 + i / 4), check_bound();
    for (int i = 0; i < 60; ++i) i % 2 == 0 ? t.step(3, 33) : t.step(7, 20), check_bound();
    for (int i = 0; i < 200; ++i) i % 50 == 25 ? t.step(12, 40) : t.step(2, from(8, 12)), check_bound();
  }
  {
    text_training t;
    for (int i = 0; i < 200; ++i) t.step(from(5, 40) * from(1, 8)), check_bound();
  }
  CHECK(memory<D>().system_frees > 0);
  CHECK(memory<D>().bytes_held <= 2 * memory<D>().peak_bytes);
}

TEST_CASE("training on fixed shapes takes no memory of the system after its first steps", "[memory]") {
  image_training images;
  text_training texts;
  empty_cache<D>();
  std::size_t warm = 0;
  for (int i = 0; i < 30; ++i) {
    images.step(4, 24);
    texts.step(100);
    if (i == 4) warm = memory<D>().system_allocations;
  }
  CHECK(memory<D>().system_allocations == warm);
}

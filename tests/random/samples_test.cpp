// tests/random/samples_test.cpp: draws for some samples of a batch are those of the whole batch.
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

/// f(generator, first sample, samples) for parts of a batch of 10, each by a copy of one generator, one after the
/// other.
template <class F>
auto in_parts(const F& f) {
  const auto part = [&](index_t first, index_t count) {
    generator copy(5, 3);
    const samples_from guard(first);
    return f(copy, first, count);
  };
  return eval(concat(0, part(0, 3), part(3, 1), part(4, 6)));
}

}  // namespace

TEST_CASE("parts of a batch are drawn with the numbers of the whole", "[random]") {
  const auto numbers = [](generator& g, index_t, index_t n) { return randn<float>(g, {n, 3, 5}); };
  generator gen(5, 3);
  CHECK(all(in_parts(numbers) == numbers(gen, 0, 10)).item());

  generator source(1);
  const tensor x = randn<float>(source, {10, 6, 7});
  const auto dropped = [&](generator& g, index_t first, index_t n) {
    const tensor y = dropout(x.slice(0, first, first + n) * 2, 0.4, g);
    return eval(dropout1d(y, 0.3, g));
  };
  gen = generator(5, 3);
  CHECK(all(in_parts(dropped) == dropped(gen, 0, 10)).item());
}

TEST_CASE("ranks with every third sample of a batch draw the numbers of the whole", "[random]") {
  generator source(1);
  const tensor x = randn<float>(source, {11, 6, 7});
  const tensor images = randn<double>(source, {11, 2, 5, 4});
  const auto check = [](const auto& whole, const auto& f) {
    generator gen(5, 3);
    const auto expected = f(whole, gen);
    for (index_t rank = 0; rank < 3; ++rank) {
      generator copy(5, 3);
      const samples_from guard(rank, 3);
      const auto mine = f(eval(whole.slice(0, rank, 11, 3)), copy);
      CHECK(all(mine == expected.slice(0, rank, 11, 3)).item());
      CHECK(copy.offset() == gen.offset());
    }
  };
  check(x, [](const auto& a, generator& g) { return eval(dropout(a * 2, 0.4, g)); });
  check(x, [](const auto& a, generator& g) { return eval(dropout1d(a, 0.4, g)); });
  check(x, [](const auto& a, generator& g) { return randn<double>(g, a.shape()); });
  check(x, [](const auto& a, generator& g) { return randint<std::int64_t>(g, -5, 90, {a.extent(0)}); });
  check(x, [](const auto& a, generator& g) { return bernoulli<float>(g, 0.3, {a.extent(0), 1}); });
  check(images, [](const auto& a, generator& g) { return random_crop(g, a, {5, 4}, {.padding = 2}); });
  check(images, [](const auto& a, generator& g) { return random_horizontal_flip(g, a); });
  check(images, [](const auto& a, generator& g) {  // in parts, as a tile or a replica draws
    const index_t half = a.extent(0) / 2;
    generator other = g;
    const tensor first = rand<float>(g, {half, 3});
    const samples_from rest(detail::current_samples().behind(half));
    return eval(concat(0, first, rand<float>(other, {a.extent(0) - half, 3})));
  });
  check(images, [](const auto& a, generator& g) {
    return detail::draw_in_window<cpu>("draw", g, detail::uniform_numbers<float>(), {{a.extent(0), 2, 9, 7}},
                                       {{a.extent(0), 2, 4, 3}}, 2, 1);
  });
}

TEST_CASE("the gradient of dropout in a part of a batch meets the mask of its value", "[random]") {
  generator gen(9);
  const samples_from guard(7);
  const variable x = ones<double>({4, 50});
  const variable y = dropout(x, 0.5, gen);
  {
    const samples_from elsewhere(0);  // where backward runs does not matter
    sum(y).backward();
  }
  CHECK(all(x.grad() == y.value()).item());
}

TEST_CASE("guards of samples nest", "[random]") {
  const auto drawn = [] {
    generator gen(2);
    return rand<float>(gen, {2, 3});
  };
  const tensor before = drawn();
  {
    const samples_from outer(2);
    const tensor second = drawn();
    CHECK_FALSE(all(second == before).item());
    {
      const samples_from inner(0);
    }
    CHECK(all(drawn() == second).item());
  }
  CHECK(all(drawn() == before).item());
  CHECK_THROWS_AS(samples_from(-1), value_error);
  CHECK_THROWS_AS(samples_from(0, 0), value_error);
}

TEST_CASE("each host device has its own number of threads", "[random]") {
  const int before = num_threads();
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(3);
  CHECK(num_threads<numa<0>>() == 1);
  CHECK(num_threads<numa<1>>() == 3);
  CHECK(num_threads() == before);
  CHECK_THROWS_AS(set_num_threads<numa<1>>(0), value_error);
}

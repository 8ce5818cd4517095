// tests/expr/assignment_test.cpp: `x = e`, `x += e` and assignment through views behave as for any value type.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <memory>
#include <sstream>
#include <thread>
#include <type_traits>

using namespace sinter;
using floats = tensor<float, 1>;

namespace {

floats numbers() { return {1, 2, 3}; }
bool holds(const floats& x, const floats& expected) { return eval(all(x == expected)).item(); }

floats& bump(floats& x) { return x += 1.f; }
const floats& bump_const(floats& x) { return x += 1.f; }
floats& twice(floats& x) { return x = x * 2.f; }
floats bumped(floats& x) { return x += 1.f; }

struct total {
  floats sum = numbers();
  floats& add(const floats& x) { return sum += x; }
  floats subtract(const floats& x) { return sum -= x; }
};

// With `auto` they return the assignment itself, which outlives x. g++ warns of that.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif
auto of_a_local() {
  floats x = numbers();
  return x = x * 2.f;
}
auto of_an_empty_local() {
  floats x;
  return x = numbers() * 2.f;
}
auto update_of_a_local() {
  floats x = numbers();
  return x += 2.f;
}

}  // namespace

TEST_CASE("an assignment converts to its left side", "[assignment]") {
  floats x = numbers();
  const floats& shown = (x += 1.f);
  CHECK(&shown == &x);
  floats& named = (x = x + 1.f);
  CHECK(&named == &x);
  CHECK(holds(x, {3, 4, 5}));
  CHECK(&bump(x) == &x);
  CHECK(&bump_const(x) == &x);
  CHECK(&twice(x) == &x);
  CHECK(holds(bumped(x), {11, 13, 15}));
  CHECK(holds(x, {11, 13, 15}));

  total t;
  CHECK(&t.add(numbers()) == &t.sum);
  CHECK(holds(t.sum, {2, 4, 6}));
  CHECK(holds(t.subtract(numbers()), {1, 2, 3}));
}

TEST_CASE("an assignment returned from the scope of its left side keeps the value", "[assignment]") {
  CHECK(holds(floats(of_a_local()), {2, 4, 6}));
  const floats y = of_an_empty_local();
  CHECK(holds(y, {2, 4, 6}));
  const floats z = update_of_a_local();
  CHECK(holds(z, {3, 4, 5}));
  of_a_local();  // and is of no consequence where nobody reads it
  const auto bind = [] {
    auto kept = of_a_local();
    const floats& name = std::move(kept);  // the left side is gone
    return name.numel();
  };
  CHECK_THROWS_WITH(bind(), Catch::Contains("was destroyed before the assignment ran"));
}

TEST_CASE("assignments initialise, chain, print and meet in a conditional", "[assignment]") {
  floats x = numbers(), y, z;
  tensor a = (x = x + 1.f);
  CHECK(holds(a, {2, 3, 4}));
  tensor b{x += 1.f};
  CHECK(holds(b, {3, 4, 5}));
  static_assert(std::is_same_v<decltype(b), floats>);
  z = y = x = x * 2.f;
  CHECK(holds(y, {6, 8, 10}));
  CHECK(holds(z, {6, 8, 10}));
  y[0] = z[1] = 7.f;
  CHECK(holds(y, {7, 7, 10}));
  const bool first = true;
  floats t = first ? (x += 1.f) : (x += 2.f);
  CHECK(holds(t, {8, 8, 11}));
  std::ostringstream text;
  text << (x = numbers() + 1.f) << (x[0] = 5.f);
  CHECK(text.str() == "[2, 3, 4] float (3,) cpu5 float () cpu");
}

TEST_CASE("an assignment that is kept does not overwrite what came after it", "[assignment]") {
  const char* const late = "before the assignment ran";
  floats x = numbers();
  const floats other = {7, 8, 9};
  const auto rebound = [&] {
    auto kept = (x = x * 2.f);
    x = other;
  };
  CHECK_THROWS_WITH(rebound(), Catch::Contains(late));
  CHECK(holds(x, {7, 8, 9}));
  const auto moved_from = [&] {
    auto kept = (x = x * 2.f);
    const floats y = std::move(x);
  };
  CHECK_THROWS_WITH(moved_from(), Catch::Contains(late));
  x = numbers();
  const auto written = [&] {
    auto kept = (x = x * 2.f);
    x += 1.f;
  };
  CHECK_THROWS_WITH(written(), Catch::Contains(late));
  CHECK(holds(x, {2, 3, 4}));
  const auto written_twice = [&] {
    auto kept = (x += 5.f);
    x += 1.f;
  };
  CHECK_THROWS_WITH(written_twice(), Catch::Contains(late));
  CHECK(holds(x, {3, 4, 5}));
  const auto view = [&] {
    auto kept = (x[0] = 9.f);
    x += 1.f;
  };
  CHECK_THROWS_WITH(view(), Catch::Contains(late));
  CHECK(holds(x, {4, 5, 6}));
  floats shared = x;
  {
    auto kept = (x += 1.f);
    x = other;
  }  // in the memory that x showed then
  CHECK(holds(shared, {5, 6, 7}));
  CHECK(holds(x, {7, 8, 9}));
}

TEST_CASE("the target of an assignment on the heap may end first", "[assignment]") {
  auto x = std::make_unique<floats>(numbers());
  auto kept = (*x = *x * 2.f);
  x.reset();
  CHECK(holds(floats(std::move(kept)), {2, 4, 6}));
}

TEST_CASE("writes in place may be joined by commas, as in a fold", "[assignment]") {
  const auto update = [](auto... x) { ((x += 1.f), ...); };
  const floats a = numbers(), b = numbers(), c = numbers();
  update(a, b, c);
  CHECK(holds(a, {2, 3, 4}));
  CHECK(holds(b, {2, 3, 4}));
  CHECK(holds(c, {2, 3, 4}));
  floats x = numbers(), y;
  x += 1.f, y = x * 2.f;
  x[0] = y[1], y[0] = x[0];
  CHECK(holds(x, {6, 3, 4}));
  CHECK(holds(y, {6, 6, 8}));
}

TEST_CASE("threads write to slices of one tensor at the same time", "[assignment][threads]") {
  tensor<float, 2> x = zeros<float>({4, 1000});
  std::thread threads[4];
  for (index_t i = 0; i < 4; ++i)
    threads[i] = std::thread([&x, i] {
      for (int n = 0; n < 200; ++n) x[i] += 1.f;
    });
  for (std::thread& t : threads) t.join();
  CHECK(eval(all(x == 200.f)).item());
}

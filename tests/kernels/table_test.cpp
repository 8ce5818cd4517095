// tests/kernels/table_test.cpp: what follows from every row of the table of kernel ops, on the host devices.
#include "../grad/differences.hpp"
#include "rows.hpp"

using namespace kernel_table;

namespace {

template <class T>
inline constexpr double tolerance = std::is_same_v<T, double>  ? 1e-12
                                    : std::is_same_v<T, float> ? 2e-5
                                                               : 2e-2;

/// The largest distance, relative to 1 and the expected values.
template <class A, class B>
double distance(const A& got, const B& expected) {
  const auto a = eval(cast<double>(got)), b = eval(cast<double>(expected));
  REQUIRE(a.shape() == b.shape());
  return eval(max(abs(a - b) / (1 + abs(b)))).item();
}

/// The gradients of f weighted, in each operand.
template <class F, class... X>
auto gradients_of(const F& f, const X&... x) {
  return [&f](const auto&... v) {
    const variable y = f(v...);
    using T = element_of<decltype(y)>;
    const auto weights = eval(cast<T>(differences::weights(y.shape())));
    y.backward(weights.template to<device_of<decltype(y)>>());
    return std::make_tuple(v.grad()...);
  }(variable(x.clone())...);
}
template <class A, class B>
double largest_distance(const A& got, const B& expected) {
  return std::apply(
      [&](const auto&... a) {
        return std::apply([&](const auto&... b) { return std::max({distance(a, b)...}); }, expected);
      },
      got);
}

/// x with its axes in another order in memory, and with gaps between its elements.
template <class X>
auto turned(const X& x) {
  if constexpr (std::remove_cvref_t<X>::rank == 1) return x;
  else return x.transpose(0, -1);
}
template <int R>
numbers<R> permuted(const numbers<R>& x) {
  return turned(turned(x).contiguous());
}
template <int R>
numbers<R> spread(const numbers<R>& x) {
  extents<R> wide = x.shape();
  wide[R - 1] *= 2;
  numbers<R> view = zeros<double>(wide).slice(-1, 0, wide[R - 1], 2);
  view.in_place() = x;
  return view;
}

template <class F, class... X>
concept takes = requires(const F& f, const X&... x) { f(x...); };
/// Does f take its first operand on one device and the rest on another?
template <class F, int First, int... Rest>
constexpr bool takes_two_devices() {
  return takes<F, tensor<float, First, numa<0>>, tensor<float, Rest, numa<1>>...>;
}

template <class Row, class Check>
void with_operands(const Row& row, const Check& check) {
  INFO(row.name);
  std::mt19937 gen(7);
  std::apply([&](const auto&... shape) { check(row.formula, differences::random(gen, shape, -2, 2)...); }, row.shapes);
}

}  // namespace

TEST_CASE("kernel ops give the values of their references", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      const auto expected = row.reference(x...);
      CHECK(distance(eval(f(x...)), expected) < tolerance<double>);
      CHECK(distance(eval(f(eval(cast<float>(x))...)), expected) < tolerance<float>);
      CHECK(distance(eval(f(eval(cast<half>(x))...)), expected) < tolerance<half>);
      CHECK(distance(eval(f(eval(cast<bfloat16>(x))...)), expected) < 8 * tolerance<half>);
    });
  });
}

TEST_CASE("kernel ops have the gradients of differences", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      differences::check(f, 12, x...);
      const auto expected = gradients_of(f, x...);
      CHECK(largest_distance(gradients_of(f, eval(cast<float>(x))...), expected) < 10 * tolerance<float>);
      CHECK(largest_distance(gradients_of(f, eval(cast<half>(x))...), expected) < 4 * tolerance<half>);
    });
  });
}

TEST_CASE("kernel ops take elementwise work before and after them", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      const tensor y = f(x...);
      CHECK(distance(eval(f(exp(log(abs(x)) / 1)...)), eval(f(eval(abs(x))...))) < 1e-12);
      CHECK(distance(eval(sigmoid(f(x...) * 2) + 1), eval(sigmoid(y * 2) + 1)) < 1e-12);
      const auto around = [&f](const auto&... v) { return tanh(f((v * 2)...)) * 3; };
      const auto apart = [&f](const auto&... v) { return eval(tanh(eval(f(eval(v * 2)...))) * 3); };
      CHECK(largest_distance(gradients_of(around, x...), gradients_of(apart, x...)) < 1e-12);
    });
  });
}

TEST_CASE("kernel ops read operands in any layout", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      const tensor y = f(x...);
      CHECK(distance(eval(f(permuted(x)...)), y) < 1e-14);
      CHECK(distance(eval(f(spread(x)...)), y) < 1e-14);
      const auto of_views = [&f](const auto&... v) { return f(turned(v)...); };
      const auto dx = gradients_of(of_views, turned(x)...);
      const auto back = std::apply([](const auto&... g) { return std::make_tuple(turned(g)...); }, dx);
      CHECK(largest_distance(back, gradients_of(f, x...)) < 1e-14);
    });
  });
}

TEST_CASE("kernel ops give the same bits whatever the number of threads and on every host device", "[kernels]") {
  const int before = num_threads();
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      set_num_threads(1);
      const tensor y = f(x...);
      const auto dx = gradients_of(f, x...);
      for (const int threads : {2, 3}) {
        set_num_threads(threads);
        CHECK(distance(eval(f(x...)), y) == 0);
        CHECK(largest_distance(gradients_of(f, x...), dx) == 0);
      }
      const tensor there = f(x.template to<numa<0>>()...);
      CHECK(distance(there.template to<cpu>(), y) == 0);
      const auto far = gradients_of(f, x.template to<numa<0>>()...);
      const auto near = std::apply([](const auto&... g) { return std::make_tuple(g.template to<cpu>()...); }, far);
      CHECK(largest_distance(near, dx) == 0);
    });
  });
  set_num_threads(before);
}

TEST_CASE("backward of kernel ops adds up, and notices or survives writes in place", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      const auto once = gradients_of(f, x...);
      [&](const auto&... v) {
        const variable y = f(v...);
        const auto seed = differences::weights(y.shape());
        y.backward(seed, {.retain_graph = true});
        y.backward(seed);
        const auto twice = std::apply([](const auto&... g) { return std::make_tuple(eval(g * 2)...); }, once);
        CHECK(largest_distance(std::make_tuple(v.grad()...), twice) < 1e-14);
      }(variable(x.clone())...);
      for (const bool result : {true, false})
        [&](const auto&... v) {
          const variable y = f(v...);
          if (result) y.value().in_place() += 1;
          else ((v.value().in_place() += 1), ...);
          try {
            y.backward(differences::weights(y.shape()));
          } catch (const autograd_error& e) {
            CHECK(std::string(e.what()).find("modified in place") != std::string::npos);
            return;
          }
          CHECK(largest_distance(std::make_tuple(v.grad()...), once) < 1e-14);
        }(variable(x.clone())...);
    });
  });
}

TEST_CASE("kernel ops refuse other elements and operands of several devices", "[kernels]") {
  for_each_row([](const auto& row) {
    with_operands(row, [&](const auto& f, const auto&... x) {
      using F = std::remove_cvref_t<decltype(f)>;
      static_assert(takes<F, std::remove_cvref_t<decltype(x)>...>);
      static_assert(takes<F, variable<float, std::remove_cvref_t<decltype(x)>::rank, numa<1>>...>);
      if constexpr (sizeof...(x) > 1) static_assert(!takes_two_devices<F, std::remove_cvref_t<decltype(x)>::rank...>());
      CHECK(row.name != nullptr);
    });
  });
  static_assert(
      !takes<decltype([](const auto& x) -> decltype(softmax(x, 0)) { return softmax(x, 0); }), tensor<int, 2>>);
}

// tests/devices/traits_test.cpp: the traits and concepts with which users check devices in code of their own.
#include <type_traits>
#include <utility>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:generic]
template <device D>
tensor<float, 2, D> standardised(const tensor<float, 2, D>& x) {
  return (x - mean(x, 1, keepdim)) * rsqrt(mean(square(x), 1, keepdim) + 1e-5f);
}
// [docs:end]

// [docs:same_device]
// Any two operands, of any kind, as long as they share a device.
template <expression A, expression B>
  requires same_device<A, B>
auto distance(const A& a, const B& b) {
  return sqrt(sum(square(a - b)));
}
// [docs:end]

// [docs:on_device]
// Only what lives on the CPU as a whole.
template <class E>
  requires on_device<E, cpu>
double first_element(const E& e) {
  return static_cast<double>(eval(e.flatten())(0));
}
// [docs:end]

// [docs:device_of]
// Puts b where a is. On a's device already, `to` hands back the same handle.
template <expression A, expression B>
auto beside(const A&, const B& b) {
  return b.template to<device_of<A>>();
}
// [docs:end]

// [docs:addable]
template <class A, class B>
auto sum_or_first(const A& a, const B& b) {
  if constexpr (addable<A, B>) return eval(a + b);
  else return a;
}
// [docs:end]

// [docs:message]
template <class A, class B>
auto blend(const A& a, const B& b) {
  static_assert(same_device<A, B>, "blend: move one of the images with .to<D>()");
  if constexpr (same_device<A, B>) return eval((a + b) / 2);
}
// [docs:end]

// [docs:user_class]
// A class of your own takes part by naming its device.
template <device D>
struct camera {
  using device_type = D;
  tensor<float, 2, D> frame;
};
static_assert(on_device<camera<numa<0>>, numa<0>>);
static_assert(!same_device<camera<numa<0>>, tensor<float, 2>>);
// [docs:end]

// Concepts as a user would write them, over operators that are deleted for the wrong operands.
template <class A, class B>
concept has_plus = requires(const A& a, const B& b) { a + b; };
template <class A, class B>
concept has_update = requires(A& a, const B& b) { a += b; };
template <class X, class W>
concept multiplies = requires(const X& x, const W& w) { matmul(x, w); };
template <class Y, class X>
concept has_gradient = requires(const Y& y, const X& x) { grad(y, x); };
template <class Y, class Seed>
concept runs_back = requires(const Y& y, const Seed& seed) { (y * y).backward(seed); };

}  // namespace

TEST_CASE("devices are told apart by type", "[devices]") {
  static_assert(device<cpu>);
  static_assert(device<numa<3>>);
  static_assert(device<cuda<1>>);
  static_assert(!device<int>);
  static_assert(!device<any_device>);
  static_assert(!device<tensor<float, 2>>);
  static_assert(is_cpu_v<cpu>);
  static_assert(is_cpu_v<numa<1>>);
  static_assert(!is_cpu_v<cuda<0>>);
  static_assert(is_cuda_v<cuda<2>>);
  static_assert(!is_cuda_v<numa<2>>);
  static_assert(!is_cuda_v<int>);
  static_assert(device_ordinal_v<cuda<2>> == 2);
  static_assert(device_ordinal_v<numa<1>> == 1);
  CHECK(device_name<cpu>() == "cpu");
  CHECK(device_name<numa<1>>() == "numa:1");
  CHECK(device_name<cuda<0>>() == "cuda:0");
}

TEST_CASE("device_of names the device of whatever has one", "[devices]") {
  using x = tensor<float, 2, cuda<1>>;
  static_assert(std::is_same_v<device_of<x>, cuda<1>>);
  static_assert(std::is_same_v<device_of<const x&>, cuda<1>>);
  static_assert(std::is_same_v<device_of<variable<float, 1, numa<0>>>, numa<0>>);
  static_assert(std::is_same_v<device_of<decltype(1 - relu(std::declval<x>()) / 2)>, cuda<1>>);
  static_assert(std::is_same_v<device_of<decltype(sum(std::declval<x>()))>, cuda<1>>);
  static_assert(std::is_same_v<device_of<decltype(std::declval<x>() > 0)>, cuda<1>>);
  static_assert(std::is_same_v<device_of<nn::linear<float, numa<1>>>, numa<1>>);
}

TEST_CASE("same_device and on_device judge every kind of expression", "[devices]") {
  using here = tensor<float, 2>;
  using there = tensor<float, 2, cuda<0>>;
  static_assert(same_device<here, variable<float, 1>>);
  static_assert(same_device<here&, const decltype(std::declval<here>() * 2)&>);
  static_assert(!same_device<here, there>);
  static_assert(!same_device<tensor<float, 2, cuda<1>>, there>);
  static_assert(!same_device<tensor<float, 2, numa<0>>, here>);
  static_assert(!same_device<int, here>);
  static_assert(on_device<there, cuda<0>>);
  static_assert(!on_device<there, cuda<1>>);
  static_assert(!on_device<int, cpu>);
  static_assert(!on_device<here, int>);
}

TEST_CASE("expression and its properties are there for user code", "[devices]") {
  using x = tensor<double, 3, numa<0>>;
  static_assert(expression<x>);
  static_assert(expression<const variable<float, 1>&>);
  static_assert(expression<decltype(exp(std::declval<x>()))>);
  static_assert(!expression<double>);
  static_assert(!expression<nn::linear<>>);
  static_assert(operand<double>);
  static_assert(literal<const int&>);
  static_assert(std::is_same_v<element_of<x>, double>);
  static_assert(rank_of<decltype(sum(std::declval<x>(), 0))> == 2);
  static_assert(!is_tracked_v<x>);
  static_assert(is_tracked_v<decltype(std::declval<variable<float, 1>>() * 2)>);
}

TEST_CASE("a user's own concept over gradients and optimizers is simply false for what does not fit", "[devices]") {
  static_assert(has_gradient<variable<float, 0, cpu, 2>, variable<float, 1, cpu, 2>>);
  static_assert(!has_gradient<variable<float, 0, cpu, 2>, variable<float, 1, numa<0>, 2>>);
  static_assert(!has_gradient<variable<float, 0>, variable<float, 1>>);
  static_assert(runs_back<variable<float, 1>, tensor<float, 1>>);
  static_assert(!runs_back<variable<float, 1>, tensor<float, 1, numa<0>>>);
  static_assert(!runs_back<variable<float, 1>, tensor<double, 1>>);
  static_assert(std::is_constructible_v<optim::sgd, variable<float, 1>>);
  static_assert(std::is_constructible_v<optim::sgd, std::vector<variable<float, 1>>>);
  static_assert(!std::is_constructible_v<optim::sgd, tensor<float, 1>>);
  static_assert(!std::is_constructible_v<optim::sgd, std::vector<tensor<float, 1>>>);
  static_assert(!std::is_constructible_v<optim::sgd, variable<float, 1, cpu, 2>>);
  static_assert(!std::is_constructible_v<optim::sgd, int>);
  static_assert(!std::is_copy_constructible_v<optim::adam> && !std::is_copy_assignable_v<optim::adam>);
  static_assert(std::is_move_constructible_v<optim::adam> && std::is_move_assignable_v<optim::adam>);
  static_assert(std::is_final_v<tensor<float, 1>> && std::is_final_v<variable<float, 1>>);
}

TEST_CASE("assignments of another device or rank are not there", "[devices]") {
  using here = tensor<float, 1>;
  using assigned = decltype(std::declval<here&>() += 1.f);
  static_assert(std::is_assignable_v<here&, assigned>);
  static_assert(!std::is_assignable_v<tensor<float, 1, numa<0>>&, assigned>);
  static_assert(!std::is_assignable_v<tensor<float, 2>&, assigned>);
  static_assert(std::is_constructible_v<here, assigned>);
  static_assert(!std::is_constructible_v<tensor<float, 1, cuda<0>>, assigned>);
}

TEST_CASE("a user's own concept over an operator is simply false across devices", "[devices]") {
  static_assert(has_plus<tensor<float, 2>, tensor<float, 1>>);
  static_assert(has_plus<tensor<float, 2, cuda<0>>, tensor<float, 1, cuda<0>>>);
  static_assert(has_plus<tensor<float, 2, cuda<0>>, int>);
  static_assert(!has_plus<tensor<float, 2>, tensor<float, 2, cuda<0>>>);
  static_assert(!has_plus<tensor<float, 2>, tensor<int, 2>>);
  static_assert(!has_plus<tensor<int, 2>, double>);
  static_assert(!has_plus<tensor<bool, 2>, tensor<bool, 2>>);
  static_assert(!has_plus<tensor<float, 2>, const char*>);
  static_assert(has_update<tensor<float, 2>, tensor<float, 1>>);
  static_assert(!has_update<tensor<float, 1>, tensor<float, 2>>);
  static_assert(!has_update<tensor<float, 1>, variable<float, 1>>);
  static_assert(!has_update<variable<float, 1>, tensor<float, 1>>);
  static_assert(!has_update<tensor<float, 1, numa<0>>, tensor<float, 1, numa<1>>>);
  static_assert(!has_update<const tensor<float, 1>, tensor<float, 1>>);
  static_assert(multiplies<tensor<float, 2>, variable<float, 2>>);
  static_assert(!multiplies<tensor<float, 2>, tensor<float, 2, numa<0>>>);
  static_assert(multiplies<tensor<float, 2>, tensor<float, 1>> && !multiplies<tensor<float, 2>, tensor<float, 0>>);
  static_assert(addable<tensor<float, 2>, float>);
  static_assert(!addable<tensor<float, 2>, tensor<float, 2, numa<0>>>);
  static_assert(multipliable<variable<float, 1>, tensor<float, 1>>);
  static_assert(!comparable<tensor<float, 1>, tensor<float, 1, cuda<0>>>);
  static_assert(applicable<ops::hypot_op, tensor<float, 1>, tensor<float, 2>>);
  static_assert(!applicable<ops::hypot_op, tensor<float, 1>, tensor<float, 2, cuda<0>>>);
  static_assert(applicable<ops::where_op, tensor<bool, 1>, tensor<float, 1>, int>);
  static_assert(!applicable<ops::where_op, tensor<bool, 1, cuda<0>>, tensor<float, 1>, int>);
}

TEST_CASE("user templates constrained by devices run on the devices they allow", "[devices]") {
  const tensor<float, 2> a = {{1, 2}, {3, 4}};
  const auto b = a.to<numa<1>>();
  CHECK(standardised(a)(0, 1) == Approx(0.5 / std::sqrt(2.5)).epsilon(1e-4));
  CHECK(standardised(b)(0, 1) == standardised(a)(0, 1));
  CHECK(eval(distance(a, a * 2)).item() == Approx(std::sqrt(30.0)));
  CHECK(first_element(a) == 1);
  CHECK(beside(b, a)(1, 1) == 4);
  CHECK(beside(a, a).data() == a.data());
  CHECK(sum_or_first(a, a)(1, 1) == 8);
  CHECK(sum_or_first(a, b)(1, 1) == 4);
  CHECK(blend(a, a * 3)(1, 1) == 8);
  const camera<numa<1>> eye{b};
  CHECK(eye.frame(0, 0) == 1);
}

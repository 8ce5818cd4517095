// tests/ops/availability_test.cpp: asking whether an op applies, as user code would.
#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

// A user's function that takes what can be averaged, and one that falls back where it cannot.
template <class A, class B>
  requires addable<A, B>
auto mean_of(const A& a, const B& b) {
  return (a + b) / 2;
}

template <class A, class B>
constexpr const char* how_to_add(const A&, const B&) {
  if constexpr (addable<A, B>) return "at once";
  else if constexpr (!same_device<A, B>) return "after a copy";
  else return "after a cast";
}

template <class A, class B>
concept averageable = requires(const A& a, const B& b) { mean_of(a, b); };

using f2 = tensor<float, 2>;
using f2_numa = tensor<float, 2, numa<0>>;
using f2_gpu = tensor<float, 2, cuda<0>>;
using f2_gpu1 = tensor<float, 2, cuda<1>>;
using d2 = tensor<double, 2>;
using i2 = tensor<std::int32_t, 2>;
using b2 = tensor<bool, 2>;

// Devices
static_assert(addable<f2, f2> && addable<f2_gpu, f2_gpu> && addable<f2, float> && addable<int, f2_gpu>);
static_assert(!addable<f2, f2_numa> && !addable<f2, f2_gpu> && !addable<f2_gpu, f2_gpu1>);
static_assert(!subtractable<f2, f2_gpu> && !multipliable<f2_numa, f2> && !dividable<f2_gpu1, f2_gpu> &&
              !comparable<f2, f2_gpu>);
static_assert(subtractable<f2, f2> && multipliable<f2, f2> && dividable<f2, f2> && comparable<f2, f2>);
// Rank-0 tensors are on a device too.
static_assert(!addable<f2, tensor<float, 0, cuda<0>>> && addable<f2, tensor<float, 0>>);
// Element types
static_assert(!addable<f2, d2> && !addable<f2, i2> && !addable<b2, b2> && addable<i2, i2> && addable<i2, int> &&
              !addable<i2, double>);
static_assert(!comparable<b2, b2> && comparable<i2, int> && !comparable<f2, i2>);
// Expressions count as their device and element type.
static_assert(addable<decltype(f2() * 2), f2> && !addable<decltype(f2_gpu() * 2), f2>);
static_assert(addable<variable<float, 2>, f2> && !addable<variable<float, 2>, f2_numa>);
// Not operands at all
static_assert(!addable<f2, const char*> && !comparable<f2, std::string>);

static_assert(applicable<ops::hypot_op, f2, f2> && applicable<ops::hypot_op, f2, int> &&
              !applicable<ops::hypot_op, i2, i2>);
static_assert(applicable<ops::clamp_op, f2, int, tensor<float, 1>> &&
              !applicable<ops::clamp_op, f2, int, tensor<double, 1>>);
static_assert(!applicable<ops::clamp_op, f2, f2, f2_gpu> && !applicable<ops::clamp_op, i2, int, double>);
static_assert(applicable<ops::where_op, b2, f2, int> && applicable<ops::where_op, b2, int, int>);
static_assert(!applicable<ops::where_op, b2, f2_gpu, f2_gpu> && !applicable<ops::where_op, f2, f2, f2> &&
              !applicable<ops::where_op, b2, f2, d2>);
static_assert(!applicable<ops::add_op, f2> && !applicable<ops::add_op, int, int> && !applicable<ops::exp_op, i2> &&
              applicable<ops::exp_op, f2_gpu>);
static_assert(applicable<ops::bit_and_op, i2, int> && !applicable<ops::bit_and_op, f2, f2> &&
              applicable<ops::logical_and_op, f2, f2> && applicable<ops::of_masks<ops::logical_and_op>, b2, b2> &&
              !applicable<ops::of_masks<ops::logical_and_op>, f2, f2>);

// Constraints of the user's own
static_assert(averageable<f2, f2> && averageable<f2, float> && !averageable<f2, f2_gpu> && !averageable<f2, d2>);

// where and its rejections
template <class M, class A, class B>
concept selectable = requires(const M& m, const A& a, const B& b) { where(m, a, b); };
static_assert(selectable<b2, f2, f2> && selectable<b2, f2, double> && selectable<b2, f2, int> &&
              selectable<b2, int, i2>);
static_assert(!selectable<tensor<bool, 2, cuda<0>>, f2, f2> && !selectable<b2, f2, f2_gpu> &&
              !selectable<b2, f2_gpu, int>);
static_assert(!selectable<b2, i2, double> && !selectable<b2, int, float> && !selectable<i2, f2, f2>);

// Whether a type is an op is never an error.
class incomplete;
union either {
  int i;
  float f;
};
struct without_name : ops::real_op {
  template <class V>
  static V apply(V x) {
    return x;
  }
};
struct without_formula : ops::real_op {
  static constexpr const char* name = "without_formula";
};
struct closed final : without_name {
  static constexpr const char* name = "closed";
};
struct without_mistake : ops::kernel_op {
  static constexpr const char* name = "without_mistake";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  static extents<1> shape(const extents<1>& x) { return x; }
};
struct without_reverse : ops::row_op {
  static constexpr const char* name = "without_reverse";
  template <class Row>
  void forward(const Row& r) const;
};

template <class... X>
constexpr int elementwise_among() {
  return (0 + ... + int{ops::is_elementwise_op<X>});
}
template <class... X>
constexpr int kernels_among() {
  return (0 + ... + int{ops::is_kernel_op<X>});
}
template <class... X>
constexpr int rows_among() {
  return (0 + ... + int{ops::is_row_op<X>});
}

static_assert(elementwise_among<void, int, const int&, int[3], int(int), incomplete, either, f2, without_name,
                                without_formula, closed, without_mistake, ops::softmax_op>() == 0);
static_assert(elementwise_among<ops::add_op, ops::exp_op, ops::equal_op, ops::where_op, ops::clamp_op,
                                ops::leaky_relu_op<float>>() == 6);
static_assert(
    kernels_among<void, int, int(int), incomplete, either, f2, ops::kernel_op, without_mistake, ops::exp_op>() == 0);
static_assert(kernels_among<ops::gather_op, ops::softmax_op, ops::conv_op<2, false>, without_reverse>() == 4);
static_assert(rows_among<void, incomplete, either, ops::row_op, ops::gather_op, without_reverse>() == 0);
static_assert(rows_among<ops::softmax_op, ops::rms_norm_op>() == 2);
// Nor whether tensors change places, or stand for a number.
static_assert(std::is_swappable_v<f2> && std::is_swappable_with_v<variable<float, 2>&, variable<float, 2>&>);
static_assert(!std::is_swappable_with_v<f2&, f2_gpu&> && !std::is_swappable_with_v<f2&, variable<float, 2>&> &&
              !std::is_swappable_with_v<variable<float, 1>&, variable<float, 2>&> &&
              !std::is_swappable_with_v<f2&, int&>);
static_assert(!std::is_convertible_v<tensor<float, 0>, float> && !std::is_constructible_v<float, tensor<float, 0>> &&
              !std::is_convertible_v<decltype(sum(f2())), double> && !std::is_convertible_v<f2, float>);
// Nor whether an op takes operands.
static_assert(detail::takes_operands<ops::softmax_op, f2> && !detail::takes_operands<ops::softmax_op, i2> &&
              !detail::takes_operands<ops::softmax_op, f2, f2> && !detail::takes_operands<ops::gather_op, f2> &&
              !detail::takes_operands<without_mistake, f2> && !detail::takes_operands<ops::softmax_op, int>);

}  // namespace

TEST_CASE("user code can branch on what an op takes") {
  const f2 a{{1, 2}}, b{{3, 4}};
  const tensor m = mean_of(a, b);
  CHECK(m(0, 0) == 2);
  CHECK(std::string(how_to_add(a, b)) == "at once");
  CHECK(std::string(how_to_add(a, b.to<numa<0>>())) == "after a copy");
  CHECK(std::string(how_to_add(a, cast<double>(b))) == "after a cast");
}

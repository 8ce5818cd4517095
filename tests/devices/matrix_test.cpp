// tests/devices/matrix_test.cpp: every operation x every pair (or triple) of devices: it compiles on one, and on one
// only.
#include <type_traits>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

template <class... D>
struct devices {};
using all = devices<cpu, numa<0>, numa<1>, cuda<0>, cuda<1>>;

// Whether Op, asked as Op::takes<D, E>, applies exactly where D is E. A function that runs at once is asked for two
// equal GPUs by files that can run there; tests/compile_fail has the host compiler's answer.
template <class Op, class D, class E>
consteval bool right() {
  if constexpr (Op::runs_at_once && is_cuda_v<D> && std::is_same_v<D, E>) return true;
  else return Op::template takes<D, E> == std::is_same_v<D, E>;
}
template <class Op, class D, class... E>
consteval bool right_row(devices<E...>) {
  return (right<Op, D, E>() && ...);
}
template <class Op, class... D>
consteval bool right_matrix(devices<D...>) {
  return (right_row<Op, D>(all()) && ...);
}
template <class Op>
concept on_one_device_only = right_matrix<Op>(all());

template <class Op, class D, class E, class F>
consteval bool right() {
  constexpr bool same = std::is_same_v<D, E> && std::is_same_v<E, F>;
  if constexpr (Op::runs_at_once && same && is_cuda_v<D>) return true;
  else return Op::template takes<D, E, F> == same;
}
template <class Op, class D, class E, class... F>
consteval bool right_row3(devices<F...>) {
  return (right<Op, D, E, F>() && ...);
}
template <class Op, class D, class... E>
consteval bool right_plane(devices<E...>) {
  return (right_row3<Op, D, E>(all()) && ...);
}
template <class Op, class... D>
consteval bool right_cube(devices<D...>) {
  return (right_plane<Op, D>(all()) && ...);
}
template <class Op>
concept on_one_device_of_three_only = right_cube<Op>(all());

// The operation of the last argument with a and b of the given types, in which D and E are devices; `at_once` says
// whether it runs when it is called.
#define PAIR(name, at_once, type_a, type_b, ...)                                               \
  struct name {                                                                                \
    static constexpr bool runs_at_once = at_once;                                              \
    template <class D, class E>                                                                \
    static constexpr bool takes = requires(UNPACK type_a a, UNPACK type_b b) { __VA_ARGS__; }; \
  };                                                                                           \
  static_assert(on_one_device_only<name>);
#define TRIPLE(name, at_once, type_a, type_b, type_c, ...)                                                      \
  struct name {                                                                                                 \
    static constexpr bool runs_at_once = at_once;                                                               \
    template <class D, class E, class F>                                                                        \
    static constexpr bool takes = requires(UNPACK type_a a, UNPACK type_b b, UNPACK type_c c) { __VA_ARGS__; }; \
  };                                                                                                            \
  static_assert(on_one_device_of_three_only<name>);
#define UNPACK(...) __VA_ARGS__

template <class Parameter>
using taker = void (*)(Parameter);

// A binary function or operator of elements T: tensors, variables, expressions and rank 0 on either side.
#define BINARY(name, T, ...)                                                                           \
  namespace name##_pairs {                                                                             \
    PAIR(tensors, false, (tensor<T, 2, D>), (tensor<T, 2, E>), __VA_ARGS__)                            \
    PAIR(broadcast, false, (tensor<T, 2, D>), (tensor<T, 1, E>), __VA_ARGS__)                          \
    PAIR(scalar_left, false, (tensor<T, 0, D>), (tensor<T, 2, E>), __VA_ARGS__)                        \
    PAIR(scalar_right, false, (const tensor<T, 2, D>&), (const tensor<T, 0, E>&), __VA_ARGS__)         \
    PAIR(expressions, false,                                                                           \
         (decltype(where(std::declval<tensor<bool, 2, D>>(), std::declval<tensor<T, 1, D>>(), T(0)))), \
         (tensor<T, 2, E>), __VA_ARGS__)                                                               \
  }
#define BINARY_REAL(name, ...)                                                                           \
  BINARY(name, float, __VA_ARGS__)                                                                       \
  namespace name##_variables {                                                                           \
    PAIR(variables, false, (variable<float, 2, D>), (variable<float, 2, E>), __VA_ARGS__)                \
    PAIR(parameter_with_data, false, (const variable<float, 1, D>&), (tensor<float, 2, E>), __VA_ARGS__) \
    PAIR(nested, false, (decltype(1 - relu(std::declval<variable<float, 2, D>>()) / 2)),                 \
         (decltype(mean(exp(std::declval<tensor<float, 2, E>>())))), __VA_ARGS__)                        \
  }

BINARY_REAL(add, a + b)
BINARY_REAL(subtract, a - b)
BINARY_REAL(multiply, a* b)
BINARY_REAL(divide, a / b)
BINARY_REAL(equal, a == b)
BINARY_REAL(not_equal, a != b)
BINARY_REAL(less, a < b)
BINARY_REAL(less_equal, a <= b)
BINARY_REAL(greater, a > b)
BINARY_REAL(greater_equal, a >= b)
BINARY_REAL(maximum, maximum(a, b))
BINARY_REAL(minimum, minimum(a, b))
BINARY_REAL(pow, pow(a, b))
BINARY_REAL(atan2, atan2(a, b))
BINARY_REAL(hypot, hypot(a, b))
BINARY_REAL(fmod, fmod(a, b))
BINARY_REAL(remainder, remainder(a, b))
BINARY(bit_and, int, a& b)
BINARY(bit_or, int, a | b)
BINARY(bit_xor, int, a ^ b)
BINARY(shift_left, int, a << b)
BINARY(shift_right, int, a >> b)
BINARY(logical_and, bool, a&& b)
BINARY(logical_or, bool, a || b)
BINARY(logical_xor, bool, logical_xor(a, b))

TRIPLE(where_all, false, (tensor<bool, 1, D>), (tensor<float, 2, E>), (tensor<float, 2, F>), where(a, b, c))
TRIPLE(where_variables, false, (tensor<bool, 1, D>), (variable<float, 2, E>), (tensor<float, 0, F>), where(a, b, c))
TRIPLE(select_all, false, (tensor<bool, 1, D>), (tensor<float, 2, E>), (tensor<float, 2, F>), select(a, b, c))
TRIPLE(clamp_all, false, (tensor<float, 2, D>), (tensor<float, 1, E>), (tensor<float, 0, F>), clamp(a, b, c))
TRIPLE(lerp_all, false, (tensor<float, 2, D>), (variable<float, 1, E>), (tensor<float, 0, F>), lerp(a, b, c))
TRIPLE(fma_all, false, (tensor<float, 2, D>), (tensor<float, 2, E>), (tensor<float, 2, F>), fma(a, b, c))
PAIR(where_number, false, (tensor<bool, 1, D>), (tensor<float, 1, E>), where(a, 0, b))
PAIR(fma_number, false, (tensor<float, 1, D>), (tensor<float, 1, E>), fma(a, 2, b))
PAIR(fma_two_numbers_apart, false, (tensor<float, 1, D>), (tensor<float, 1, E>), fma(3, a, b))

PAIR(update_add, false, (tensor<float, 2, D>&), (tensor<float, 2, E>), a += b)
PAIR(update_subtract, false, (tensor<float, 2, D>&), (tensor<float, 1, E>), a -= b)
PAIR(update_multiply, false, (tensor<float, 2, D>&), (tensor<float, 0, E>), a *= b)
PAIR(update_divide, false, (tensor<float, 2, D>&), (decltype(std::declval<tensor<float, 2, E>>() + 1)), a /= b)
PAIR(update_view, false, (tensor<float, 2, D>&), (tensor<float, 1, E>), a[0] += b)
PAIR(assign_to_view, false, (tensor<float, 2, D>&), (tensor<float, 2, E>), a.slice(0, 0, 1) = b)
PAIR(assign_expression_to_view, false, (tensor<float, 2, D>&), (tensor<float, 1, E>), a[0] = b * 2)
PAIR(assign, false, (tensor<float, 2, D>&), (tensor<float, 2, E>), a = b)
PAIR(assign_expression, false, (tensor<float, 2, D>&), (tensor<float, 2, E>), a = b * 2)
PAIR(assign_variable, false, (variable<float, 2, D>&), (variable<float, 2, E>), a = b)
PAIR(construct, false, (D), (tensor<float, 2, E>), tensor<float, 2, D>(b))
PAIR(construct_variable, false, (D), (tensor<float, 2, E>), variable<float, 2, D>(b))
PAIR(pass, false, (taker<tensor<float, 2, D>>), (tensor<float, 2, E>), a(b))
PAIR(pass_by_reference, false, (taker<const tensor<float, 2, D>&>), (tensor<float, 2, E>), a(b))
PAIR(pass_parameter, false, (taker<const variable<float, 2, D>&>), (const variable<float, 2, E>), a(b))
PAIR(backward_seed, false, (variable<float, 2, D>), (tensor<float, 2, E>), a.backward(b))
PAIR(backward_seed_function, true, (variable<float, 2, D>), (tensor<float, 2, E>), backward(a, b))

PAIR(matmul_pair, true, (tensor<float, 2, D>), (tensor<float, 2, E>), matmul(a, b))
PAIR(matmul_batched, true, (variable<float, 3, D>), (tensor<float, 3, E>), matmul(a, b))
PAIR(mv_pair, true, (tensor<float, 2, D>), (variable<float, 1, E>), mv(a, b))
PAIR(dot_pair, true, (tensor<float, 1, D>), (tensor<float, 1, E>), dot(a, b))
PAIR(linear_pair, true, (tensor<float, 2, D>), (variable<float, 2, E>), linear(a, b))
TRIPLE(linear_all, true, (tensor<float, 2, D>), (tensor<float, 2, E>), (tensor<float, 1, F>), linear(a, b, c))
PAIR(gather_pair, true, (tensor<float, 2, D>), (tensor<std::int64_t, 2, E>), gather(a, 1, b))
PAIR(index_select_pair, true, (tensor<float, 2, D>), (tensor<int, 1, E>), index_select(a, 0, b))
TRIPLE(stack_all, true, (tensor<float, 1, D>), (tensor<float, 1, E>), (tensor<float, 1, F>), stack(0, a, b, c))
TRIPLE(concat_all, true, (tensor<float, 1, D>), (tensor<float, 1, E>), (variable<float, 1, F>), concat(0, a, b, c))
PAIR(cross_entropy_mean, true, (tensor<float, 2, D>), (tensor<std::int64_t, 1, E>), cross_entropy(a, b))
PAIR(cross_entropy_sum, true, (variable<float, 2, D>), (tensor<int, 1, E>), cross_entropy(a, b, reduction::sum))
PAIR(nll, true, (tensor<float, 2, D>), (tensor<std::int64_t, 1, E>), nll_loss(a, b))
PAIR(mse, true, (tensor<float, 2, D>), (tensor<float, 2, E>), mse_loss(a, b))
PAIR(bce, true, (variable<float, 1, D>), (tensor<float, 1, E>), bce_with_logits(a, b, reduction::none))
PAIR(feed_module, true, (const nn::linear<float, D>&), (tensor<float, 2, E>), a(b))
PAIR(feed_chain, true, (const nn::sequential<nn::linear<float, D>, nn::relu>&), (tensor<float, 2, E>), a(b))
PAIR(chain, true, (nn::linear<float, D>), (nn::linear<float, E>), nn::sequential<decltype(a), decltype(b)>(a, b))

#undef BINARY_REAL
#undef BINARY
#undef TRIPLE
#undef PAIR
#undef UNPACK

template <class From, class To>
constexpr bool moves =
    std::is_convertible_v<From, To> || std::is_constructible_v<To, From> || std::is_assignable_v<To&, From>;

template <class D, class... E>
consteval bool type_traits_agree(devices<E...>) {
  return ((moves<tensor<float, 2, E>, tensor<float, 2, D>> == std::is_same_v<D, E>) && ...) &&
         ((moves<decltype(std::declval<tensor<float, 2, E>>() * 2), tensor<float, 2, D>> == std::is_same_v<D, E>) &&
          ...) &&
         ((moves<variable<float, 2, E>, variable<float, 2, D>> == std::is_same_v<D, E>) && ...);
}
static_assert(type_traits_agree<cpu>(all()) && type_traits_agree<numa<0>>(all()) && type_traits_agree<numa<1>>(all()) &&
              type_traits_agree<cuda<0>>(all()) && type_traits_agree<cuda<1>>(all()));

// What is read by the host exists on host devices only.
template <class X>
concept host_readable = requires(X x) { x.data(); } || requires(X x) { x(0); } || requires(X x) { x.begin(); } ||
                        requires(X x) { x.end(); } || requires(X x) { x.span(); };
static_assert(host_readable<tensor<float, 1, cpu>> && host_readable<tensor<float, 1, numa<3>>>);
static_assert(!host_readable<tensor<float, 1, cuda<0>>> && !host_readable<const tensor<float, 1, cuda<7>>>);
static_assert(host_readable<variable<float, 1>> && !host_readable<variable<float, 1, cuda<0>>>);

// An expression has no `to`; tensors and variables have.
template <class X>
concept movable = requires(const X& x) { x.template to<numa<1>>(); };
static_assert(movable<tensor<float, 2>> && movable<variable<float, 2>>);
static_assert(!movable<decltype(std::declval<tensor<float, 2>>() * 2)>);
static_assert(!movable<decltype(sum(std::declval<tensor<float, 2>>()))>);

}  // namespace

TEST_CASE("the matrix of operations and devices holds", "[devices]") { SUCCEED("checked when this file was compiled"); }

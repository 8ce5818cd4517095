// tests/ops/row.hpp: what a row of the op table consists of, and the small functions that are made from it.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "sinter/sinter.hpp"

namespace op_table {

using sinter::index_t;

enum class type { f32, f64, i8, i16, i32, i64, u8, boolean };

template <class T>
inline constexpr type type_of = std::is_same_v<T, float>          ? type::f32
                                : std::is_same_v<T, double>       ? type::f64
                                : std::is_same_v<T, std::int8_t>  ? type::i8
                                : std::is_same_v<T, std::int16_t> ? type::i16
                                : std::is_same_v<T, std::int32_t> ? type::i32
                                : std::is_same_v<T, std::int64_t> ? type::i64
                                : std::is_same_v<T, std::uint8_t> ? type::u8
                                                                  : type::boolean;

/// An operand of rank 3 as numbers: memory, and how it is looked at. Every element type takes its values from double.
struct operand {
  std::vector<double> memory;
  std::array<index_t, 3> shape{};
  std::array<index_t, 3> strides{};
  index_t offset = 0;

  index_t numel() const { return shape[0] * shape[1] * shape[2]; }
  double at(index_t i, index_t j, index_t k) const {
    return memory[static_cast<std::size_t>(offset + i * strides[0] + j * strides[1] + k * strides[2])];
  }
};
using operands = std::vector<operand>;
using values = std::vector<double>;

/// An op on one element type.
struct functions {
  type element = type::f32;
  bool gives_mask = false;
  values (*evaluate)(const operands&) = nullptr;  ///< dense, row-major, over the broadcast shape
  values (*evaluate_elsewhere)(const operands&) = nullptr;
  values (*evaluate_empty)() = nullptr;
  values (*by_scalar)(const operands&) = nullptr;  ///< element by element with the scalar words; dense operands
  std::vector<values> (*gradients)(const operands&, const values& seed) = nullptr;  ///< dense, of each operand's shape
  std::vector<values> (*gradients_elsewhere)(const operands&, const values& seed) = nullptr;  ///< where there is a GPU
  std::vector<values> (*gradients_by_scalar)(const operands&, const values& seed) = nullptr;
  /// The gradients of sum(seed * derivative to operand `which`).
  std::vector<values> (*second_order)(const operands&, const values& seed, int which) = nullptr;
};

struct interval {
  double low, high;
};
inline interval between(double low, double high) { return {low, high}; }

struct row {
  std::string name;
  int arity = 1;
  double (*reference)(const double*) = nullptr;
  double (*reference_on_integers)(double, double, double) = nullptr;  ///< where integers differ
  std::array<interval, 3> domain{{{-4, 4}, {-4, 4}, {-4, 4}}};
  double tolerance = 4e-7;           ///< of float values, relative to |value| + scale; double: times 1e-8
  double scale = 0;                  ///< what the terms of a sum or difference measure
  double gradient_tolerance = 2e-6;  ///< of float gradients, relative to |gradient| + 1
  bool extremes = true;              ///< float follows the reference at 0, infinities, NaN, denormals and +-1e4
  std::vector<functions> types;

  const functions* on(type t) const {
    for (const functions& f : types)
      if (f.element == t) return &f;
    return nullptr;
  }
};

/// What a row may add behind the formula.
struct options {
  interval x{-4, 4}, y{-4, 4}, z{-4, 4};
  double tolerance = 4e-7;
  double scale = 0;
  double gradient_tolerance = 2e-6;
  bool extremes = true;
  double (*on_integers)(double, double, double) = nullptr;
};

// ---- from a formula to functions

/// The device that the host's is compared with: in files for nvcc a GPU.
using elsewhere = std::conditional_t<SINTER_WITH_CUDA, sinter::cuda<0>, sinter::numa<0>>;

template <class T, class D>
sinter::tensor<T, 3, D> to_tensor(const operand& o) {
  auto host = sinter::tensor<T, 1>::uninitialized({{static_cast<index_t>(o.memory.size())}});
  for (std::size_t i = 0; i < o.memory.size(); ++i) host.data()[i] = static_cast<T>(o.memory[i]);
  const auto memory = host.template to<D>();
  const sinter::extents<3> shape{{o.shape[0], o.shape[1], o.shape[2]}};
  const sinter::extents<3> strides{{o.strides[0], o.strides[1], o.strides[2]}};
  using access = sinter::detail::access;
  return access::make<T, 3, D>(access::storage_of(memory), access::data(memory) + o.offset, shape, strides);
}

template <class T, class D>
values to_values(const sinter::tensor<T, 3, D>& t) {
  const auto dense = t.contiguous().template to<sinter::cpu>();
  return values(dense.begin(), dense.end());
}

/// F applied to N tensors, or variables, made by `make`.
template <class F, int N, class Make>
auto apply_to(const Make& make) {
  if constexpr (N == 1) return F{}(make(0));
  else if constexpr (N == 2) return F{}(make(0), make(1));
  else return F{}(make(0), make(1), make(2));
}

template <class F, int N, class T, class D>
values evaluate(const operands& in) {
  return to_values(sinter::eval(apply_to<F, N>([&](std::size_t i) { return to_tensor<T, D>(in[i]); })));
}

template <class F, int N, class T>
values evaluate_empty() {
  return to_values(sinter::eval(apply_to<F, N>([](std::size_t) { return sinter::tensor<T, 3>{}; })));
}

template <class F, int N, class T, class D>
std::vector<values> gradients(const operands& in, const values& seed) {
  std::vector<sinter::variable<T, 3, D>> leaves;
  for (int i = 0; i < N; ++i) leaves.emplace_back(to_tensor<T, D>(in[static_cast<std::size_t>(i)]));
  const auto y = sinter::eval(apply_to<F, N>([&](std::size_t i) { return leaves[i]; }));
  auto g = sinter::tensor<T, 3>::uninitialized(y.shape());
  for (std::size_t i = 0; i < seed.size(); ++i) g.data()[i] = static_cast<T>(seed[i]);
  y.backward(g.template to<D>());
  std::vector<values> result;
  for (const auto& leaf : leaves) result.push_back(leaf.has_grad() ? to_values(leaf.grad()) : values());
  return result;
}

template <class F, int N, class T>
std::vector<values> second_order(const operands& in, const values& seed, int which) {
  std::vector<sinter::variable<T, 3, sinter::cpu, 2>> leaves;
  for (int i = 0; i < N; ++i) leaves.emplace_back(to_tensor<T, sinter::cpu>(in[static_cast<std::size_t>(i)]));
  const sinter::variable y = sinter::sum(apply_to<F, N>([&](std::size_t i) { return leaves[i]; }));
  auto weights = sinter::tensor<T, 3>::uninitialized(leaves[0].shape());
  for (std::size_t i = 0; i < seed.size(); ++i) weights.data()[i] = static_cast<T>(seed[i]);
  std::vector<values> result(N);
  try {
    const sinter::variable z = sinter::sum(sinter::grad(y, leaves[static_cast<std::size_t>(which)]) * weights);
    z.backward();
  } catch (const sinter::autograd_error&) {
    return result;  // y does not depend on that operand
  }
  for (std::size_t i = 0; i < N; ++i)
    if (leaves[i].has_grad()) result[i] = to_values(leaves[i].grad());
  return result;
}

/// Runs a lowered kernel on single numbers: what a CUDA thread does.
struct scalar_machine {
  const sinter::detail::leaf_ref* leaves;
  double* sums;
  index_t i = 0;

  template <int Slot, class T>
  T load() const {
    return static_cast<const T*>(leaves[Slot].data)[i];
  }
  template <class T>
  T literal(T x) const {
    return x;
  }
  index_t index() const { return i; }
  template <int Sink, class T, class V>
  void accumulate(const V& g) const {
    static_assert(std::is_same_v<V, T>, "a derivative changed its element type");
    sums[Sink] = static_cast<double>(g);
  }
};

template <class F, int N, class T>
values by_scalar(const operands& in) {
  const auto e = apply_to<F, N>([&](std::size_t i) { return to_tensor<T, sinter::cpu>(in[i]); });
  using E = std::remove_const_t<decltype(e)>;
  using K = sinter::detail::lowered<false, E>;
  const K k = sinter::detail::lower<false>(e);
  const sinter::detail::leaves_of<E> leaves(e);
  scalar_machine m{leaves, nullptr};
  values result;
  for (; m.i < in[0].numel(); ++m.i)
    result.push_back(static_cast<double>(k.template eval<0>(m, sinter::detail::kernel::no_scope{})));
  return result;
}

template <class F, int N, class T>
std::vector<values> gradients_by_scalar(const operands& in, const values& seed) {
  namespace kernel = sinter::detail::kernel;
  std::vector<sinter::variable<T, 3>> vars;
  for (int i = 0; i < N; ++i) vars.emplace_back(to_tensor<T, sinter::cpu>(in[static_cast<std::size_t>(i)]));
  const auto e = apply_to<F, N>([&](std::size_t i) { return vars[i]; });
  using E = std::remove_const_t<decltype(e)>;
  using K = sinter::detail::lowered<true, E>;
  const K k = sinter::detail::lower<true>(e);
  const sinter::detail::leaves_of<E> leaves(e);
  std::vector<std::size_t> owner;  // of each sink
  for (const sinter::detail::leaf_ref& leaf : leaves.at)
    if (leaf.state != nullptr)
      for (std::size_t i = 0; i < vars.size(); ++i)
        if (leaf.data == vars[i].value().data()) owner.push_back(i);
  std::vector<values> result(N, values(seed.size()));
  double sums[K::sinks > 0 ? K::sinks : 1] = {};
  scalar_machine m{leaves, sums};
  for (; m.i < in[0].numel(); ++m.i) {
    kernel::no_scope scope;
    const T g = static_cast<T>(seed[static_cast<std::size_t>(m.i)]);
    if constexpr (kernel::reads_result<K>) {
      const auto r = k.template forward<0, false>(m, scope, k.template eval<0>(m, scope));
      k.template reverse<0, 0>(m, scope, r, g);
    } else {
      const auto r = k.template forward<0, false>(m, scope);
      k.template reverse<0, 0>(m, scope, r, g);
    }
    for (std::size_t s = 0; s < owner.size(); ++s) result[owner[s]][static_cast<std::size_t>(m.i)] += sums[s];
  }
  return result;
}

// ---- which operands a formula takes

template <class F, int N, class T, class A, class B, class C>
constexpr bool takes() {
  using sinter::tensor;
  if constexpr (N == 1) return std::is_invocable_v<F, const tensor<T, 3, A>&>;
  else if constexpr (N == 2) return std::is_invocable_v<F, const tensor<T, 3, A>&, const tensor<T, 2, B>&>;
  else return std::is_invocable_v<F, const tensor<T, 3, A>&, const tensor<T, 2, B>&, const tensor<T, 1, C>&>;
}

/// On every device alone, and on no two different ones, whichever operand is elsewhere.
template <class F, int N, class T, class A, class B>
constexpr bool one_device_only() {
  if constexpr (std::is_same_v<A, B>) return takes<F, N, T, A, A, A>();
  else if constexpr (N == 1) return true;
  else if constexpr (N == 2) return !takes<F, N, T, A, B, B>();
  else return !takes<F, N, T, A, A, B>() && !takes<F, N, T, A, B, A>() && !takes<F, N, T, B, A, A>();
}
template <class F, int N, class T, class A, class... B>
constexpr bool one_device_only_in_row() {
  return (one_device_only<F, N, T, A, B>() && ...);
}
template <class F, int N, class T, class... D>
constexpr bool respects_devices() {
  return (one_device_only_in_row<F, N, T, D, D...>() && ...);
}

template <class F, int N, class X>
struct formula_of : std::invoke_result<F, X, X> {};
template <class F, class X>
struct formula_of<F, 1, X> : std::invoke_result<F, X> {};
template <class F, class X>
struct formula_of<F, 3, X> : std::invoke_result<F, X, X, X> {};
/// The expression of F over tensors of T.
template <class F, int N, class T>
using formula = typename formula_of<F, N, const sinter::tensor<T, 3>&>::type;

/// Given expressions in place of values, the derivative to operand I is an expression of I's element type.
template <int I, class Op, class... A>
constexpr bool derivative_is_expression() {
  using T = sinter::element_of<std::tuple_element_t<std::size_t{I}, std::tuple<A...>>>;
  using R = typename Op::template result<sinter::element_of<A>...>;
  if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<R>) {
    using Y = sinter::tensor<R, 3>;
    using G = decltype(std::declval<const Op&>().template grad<I>(std::declval<const Y&>(), std::declval<const A&>()...,
                                                                  std::declval<const Y&>()));
    return sinter::expression<G> && std::is_same_v<sinter::element_of<G>, T>;
  }
  return true;
}
template <class E>
inline constexpr bool derivatives_are_expressions = true;
template <class Op, class... A>
inline constexpr bool derivatives_are_expressions<sinter::map_expr<Op, A...>> =
    []<int... I>(std::integer_sequence<int, I...>) {
      return (derivative_is_expression<I, Op, A...>() && ...);
    }(std::make_integer_sequence<int, sizeof...(A)>());

/// Adds the op on T if it takes T.
template <class F, int N, class T>
void add_type(row& r) {
  using sinter::cpu;
  if constexpr (takes<F, N, T, cpu, cpu, cpu>()) {
    using E = formula<F, N, T>;
    static_assert(std::is_trivially_copyable_v<sinter::detail::lowered<false, E>>,
                  "plans are copied to devices as bytes");
    static_assert(derivatives_are_expressions<E>, "derivatives of derivatives need them to be expressions");
    static_assert(std::is_same_v<sinter::device_of<E>, cpu>);
    functions f;
    f.element = type_of<T>;
    f.gives_mask = std::is_same_v<sinter::element_of<E>, bool>;
    constexpr bool has_gradients = std::is_floating_point_v<T> && std::is_same_v<sinter::element_of<E>, T>;
    f.evaluate = &evaluate<F, N, T, cpu>;
    if constexpr (has_gradients) f.gradients = &gradients<F, N, T, cpu>;
    if constexpr (SINTER_WITH_CUDA) {
      f.evaluate_elsewhere = &evaluate<F, N, T, elsewhere>;
      if constexpr (has_gradients) f.gradients_elsewhere = &gradients<F, N, T, elsewhere>;
    } else {
      f.evaluate_empty = &evaluate_empty<F, N, T>;
      f.by_scalar = &by_scalar<F, N, T>;
      if constexpr (std::is_same_v<T, float> || !takes<F, N, float, cpu, cpu, cpu>()) {
        f.evaluate_elsewhere = &evaluate<F, N, T, elsewhere>;
        static_assert(
            respects_devices<F, N, T, cpu, sinter::numa<0>, sinter::numa<1>, sinter::cuda<0>, sinter::cuda<1>>(),
            "the op takes operands on different devices, or not those on one device");
      }
      if constexpr (has_gradients) f.gradients_by_scalar = &gradients_by_scalar<F, N, T>;
      if constexpr (has_gradients && std::is_same_v<T, double>) f.second_order = &second_order<F, N, T>;
    }
    r.types.push_back(f);
  }
}

template <class R, int N>
double call_reference(const double* v) {
  if constexpr (N == 1) return static_cast<double>(R{}(v[0]));
  else if constexpr (N == 2) return static_cast<double>(R{}(v[0], v[1]));
  else return static_cast<double>(R{}(v[0], v[1], v[2]));
}

/// A row: the formula in terms of the library, and in double.
template <int N, class F, class R>
row make_row(const char* name, F, R, const options& o) {
  row r;
  r.name = name;
  r.arity = N;
  r.reference = &call_reference<R, N>;
  r.reference_on_integers = o.on_integers;
  r.domain = {{o.x, o.y, o.z}};
  r.tolerance = o.tolerance;
  r.scale = o.scale;
  r.gradient_tolerance = o.gradient_tolerance;
  r.extremes = o.extremes;
  add_type<F, N, float>(r);
  add_type<F, N, double>(r);
  add_type<F, N, std::int32_t>(r);
  add_type<F, N, bool>(r);
  if constexpr (!SINTER_WITH_CUDA) {  // one kind of integers is enough for a GPU's compiler
    add_type<F, N, std::int8_t>(r);
    add_type<F, N, std::int16_t>(r);
    add_type<F, N, std::int64_t>(r);
    add_type<F, N, std::uint8_t>(r);
  }
  return r;
}

}  // namespace op_table

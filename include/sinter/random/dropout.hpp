// sinter/random/dropout.hpp: zeroes elements at random; the mask is computed again in backward, never stored.
#pragma once

#include "sinter/expr/point.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/random/distribution.hpp"

namespace sinter {

namespace detail::kernel {

/// a times 0 or scale. Its index space must be the statement's.
template <class T, class A>
struct dropout : drawn<bernoulli_numbers<T>> {
  using value_type = T;
  using leaf_types = typename A::leaf_types;
  using sink_types = typename A::sink_types;
  static constexpr int leaves = A::leaves;
  static constexpr int sinks = A::sinks;
  A a;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope& s) const {
    return a.template eval<L>(m, s) * this->values(m);
  }

  template <class RA, class V>
  struct forward_values {
    RA a;
    V value;
  };
  template <int L, bool Need, class M, class Scope>
  SINTER_WORD auto forward(const M& m, const Scope& s) const {
    auto ra = a.template forward<L, Need>(m, s);
    if constexpr (Need) {
      const auto value = ra.value * this->values(m);
      return forward_values<decltype(ra), std::remove_const_t<decltype(value)>>{ra, value};
    } else {
      return forward_values<decltype(ra), unneeded>{ra, {}};
    }
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope& s, const Rec& r, const G& g) const {
    if constexpr (sinks > 0) a.template reverse<L, S>(m, s, r.a, g * this->values(m));
  }
  template <bool Need>
  static constexpr void mark(bool* needed) {
    A::template mark<Need>(needed);
  }
};

}  // namespace detail::kernel

namespace detail {

struct dropout_name {
  static constexpr const char* name = "dropout";
};

/// The pass of a dropout: x, which holds no points, times the mask.
template <class X>
struct masked_expr {
  using op_type = dropout_name;
  using value_type = element_of<X>;
  using device_type = device_of<X>;
  static constexpr int rank = X::rank;
  static constexpr int order = X::order;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  bernoulli_numbers<value_type> keep;
  random_key key;
  X x;
  const auto& shape() const { return x.shape(); }
};

template <class X>
struct lowering<masked_expr<X>> {
  template <bool Track>
  static kernel::dropout<element_of<X>, lowered<Track, X>> plan(const masked_expr<X>& e) {
    return {{e.keep, e.key}, lower<Track>(e.x)};
  }
  template <bool Track>
  static leaf_ref* list(const masked_expr<X>& e, leaf_ref* to) {
    return list_leaves<Track>(e.x, to);
  }
};

}  // namespace detail

/// A point, because the mask counts the elements of its own shape, whatever it is broadcast to.
template <class X>
struct [[nodiscard]] dropout_expr
    : detail::point_base<dropout_expr<X>, element_of<X>, X::rank, device_of<X>, X::order> {
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = false;
  using tensor_type = tensor<element_of<X>, X::rank, device_of<X>>;

  dropout_expr(detail::bernoulli_numbers<element_of<X>> keep, random_key key, X x) : pass{keep, key, std::move(x)} {
    this->shape_ = pass.x.shape();
  }
  tensor_type new_value() const { return detail::new_result(pass); }
  template <class Epilogue>
  void compute_into(const tensor_type& to, const Epilogue*) const {
    detail::write(pass, to);
  }
  auto record(const tensor_type& value) const { return detail::record(pass, value); }

  detail::masked_expr<X> pass;
};

namespace detail {

/// 0 with probability p, else 1 / (1 - p).
template <class T>
bernoulli_numbers<T> kept_numbers(const char* op, double p) {
  using C = compute_type<T>;
  const std::uint64_t limit = (std::uint64_t{1} << 32) - bernoulli_limit(op, p);
  return {limit, p < 1 ? static_cast<C>(1 / (1 - p)) : C(0), C(0)};
}

}  // namespace detail

/// Each element of x is zeroed with probability p, else multiplied by 1 / (1 - p), so that its mean stays. Takes its
/// random key when it is built: an expression evaluated twice, and its backward, see the same mask, on every device.
/// Elementwise work on x runs in the same pass. Derivative: g times the same mask. N. Srivastava et al., JMLR 15
/// (2014). Errors: value_error unless p is in [0, 1].
///
///     tensor y = dropout(relu(x), 0.5, gen);
template <expression X>
  requires floating_element<element_of<X>>
auto dropout(X&& x, double p, generator& gen) {
  using T = element_of<X>;
  detail::check_defined("dropout", x);
  const detail::bernoulli_numbers<T> keep = detail::kept_numbers<T>("dropout", p);
  constexpr int points = detail::points_in<detail::bare<X>>;
  if constexpr (points > 0) {
    auto value = eval(std::forward<X>(x));
    const auto key = detail::next_key<device_of<X>>("dropout", gen, value.shape());
    return dropout_expr<decltype(value)>(keep, key, std::move(value));
  } else {
    const auto key = detail::next_key<device_of<X>>("dropout", gen, x.shape());
    return dropout_expr<detail::bare<X>>(keep, key, std::forward<X>(x));
  }
}

struct random_numbers_without_a_generator;
struct pass_a_generator_as_third_argument;
template <expression X, class Problem = random_numbers_without_a_generator,
          class Fix = pass_a_generator_as_third_argument>
void dropout(X&&, double) = delete;

template <class...>
struct operands_of_element_types;
template <int...>
struct operands_of_ranks;
struct use_floating_point_operands_of_one_type;
template <int Least, int Most>
struct use_an_operand_of_rank;

namespace detail {

template <class X, int N>
constexpr auto find_channel_dropout_mistake() {
  if constexpr (!expression<X>) return no_operands<X>{};
  else if constexpr (!floating_element<element_of<X>>)
    return mistake<operands_of_element_types<element_of<X>>, use_floating_point_operands_of_one_type>{};
  else if constexpr (rank_of<X> != N + 2)
    return mistake<operands_of_ranks<rank_of<X>>, use_an_operand_of_rank<N + 2, N + 2>>{};
  else return fitting<element_of<X>>{};
}
/// Of an operand with N axes behind its channels.
template <class X, int N>
using channel_dropout_check = decltype(find_channel_dropout_mistake<bare<X>, N>());

/// What x (N,C,...) is multiplied with: (N,C,1,...), drawn by the numbers n C + c.
template <class X>
auto channel_mask(const char* op, const X& x, double p, generator& gen) {
  check_defined(op, x);
  extents<rank_of<X>> shape = ones_extents<rank_of<X>>();
  shape[0] = x.shape()[0];
  shape[1] = x.shape()[1];
  return draw<device_of<X>>(gen, kept_numbers<element_of<X>>(op, p), shape);
}

}  // namespace detail

/// dropout of whole channels: all elements of a channel of x (N,C,H,W) are zeroed with probability p, else multiplied
/// by 1 / (1 - p), as torch.nn.functional.dropout2d. The mask is drawn when the expression is built, channel c of
/// picture n by the number n C + c, and kept for backward: N C elements. Elementwise work around it runs in the same
/// pass. Derivative: g times the mask. J. Tompson et al., CVPR (2015). Errors: value_error unless p is in [0, 1].
///
///     tensor y = dropout2d(relu(x), 0.5, gen);
template <class X>
  requires detail::is_fitting<detail::channel_dropout_check<X, 2>>
auto dropout2d(X&& x, double p, generator& gen) {
  const auto mask = detail::channel_mask("dropout2d", x, p, gen);
  return std::forward<X>(x) * mask;
}
template <class X, class Problem = typename detail::channel_dropout_check<X, 2>::problem,
          class Fix = typename detail::channel_dropout_check<X, 2>::fix>
void dropout2d(X&&, double, generator&) = delete;

/// The same of (N,C,L).
template <class X>
  requires detail::is_fitting<detail::channel_dropout_check<X, 1>>
auto dropout1d(X&& x, double p, generator& gen) {
  const auto mask = detail::channel_mask("dropout1d", x, p, gen);
  return std::forward<X>(x) * mask;
}
template <class X, class Problem = typename detail::channel_dropout_check<X, 1>::problem,
          class Fix = typename detail::channel_dropout_check<X, 1>::fix>
void dropout1d(X&&, double, generator&) = delete;

/// The same of (N,C,D,H,W).
template <class X>
  requires detail::is_fitting<detail::channel_dropout_check<X, 3>>
auto dropout3d(X&& x, double p, generator& gen) {
  const auto mask = detail::channel_mask("dropout3d", x, p, gen);
  return std::forward<X>(x) * mask;
}
template <class X, class Problem = typename detail::channel_dropout_check<X, 3>::problem,
          class Fix = typename detail::channel_dropout_check<X, 3>::fix>
void dropout3d(X&&, double, generator&) = delete;

}  // namespace sinter

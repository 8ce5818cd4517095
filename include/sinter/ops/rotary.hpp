// sinter/ops/rotary.hpp: pairs of elements turned by the angle of their position.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

struct use_an_operand_of_rank_2_to_4_and_angles_of_rank_2_or_3;

/// Which elements of a row of n make a pair.
struct rotary_options {
  bool interleaved = false;  ///< elements 2 i and 2 i + 1, as in GPT-J; else i and i + n / 2, as in Llama
};

namespace ops {

/// x (batch,heads,steps,d): the first 2 `pairs` elements of a row turn, the other `rest` stay. The angles are dense,
/// with a row for each step. Strides in elements.
struct rotary_extents {
  index_t batch = 1, heads = 1, steps = 0, pairs = 0, rest = 0;
  index_t angles_of_batch = 0;  ///< between the angles of two samples; 0 if all share them
};
struct rotary_strides {
  index_t batch = 0, heads = 0, steps = 0, elements = 0;

  SINTER_WORD index_t row(index_t n, index_t h, index_t t) const { return n * batch + h * heads + t * steps; }
};

SINTER_SHARED void check_rotary(sinter::detail::shape_piece x, sinter::detail::shape_piece cos,
                                sinter::detail::shape_piece sin);

/// y (+)= x turned, back where `sign` is -1.
template <class T>
struct rotary_work {
  rotary_extents extents;
  rotary_strides from, to;
  const T *x, *cos, *sin;
  T* y;
  compute_type<T> sign;
  bool interleaved, add;
};

struct rotary_op : kernel_op {
  static constexpr const char* name = "rotary";
  static constexpr unsigned grad_uses[1] = {uses::second | uses::third};
  static constexpr bool keeps_order = true;
  static constexpr take takes(int i) { return i == 0 ? take::strided : take::dense; }
  template <device D>
  static constexpr bool has_kernels_on = true;

  rotary_options options;
  explicit rotary_op(const rotary_options& o) : options(o) {}

  template <int R, int A>
  const extents<R>& shape(const extents<R>& x, const extents<A>& cos, const extents<A>& sin) const {
    check_rotary({x.data(), R}, {cos.data(), A}, {sin.data(), A});
    return x;
  }
  template <class X, class C, class S>
  static constexpr auto mistake() {
    using namespace sinter::detail;
    if constexpr (rank_of<C> != rank_of<S> || rank_of<C> < 2 || rank_of<C> > 3 || rank_of<X> < rank_of<C> ||
                  rank_of<X> > 4)
      return sinter::detail::mistake<operands_of_ranks<rank_of<X>, rank_of<C>, rank_of<S>>,
                                     use_an_operand_of_rank_2_to_4_and_angles_of_rank_2_or_3>{};
    else return floating_of_rank<2, 4, X, C, S>();
  }

  template <int R, int A>
  static rotary_extents extents_of(const extents<R>& x, const extents<A>& cos) {
    rotary_extents e;
    if constexpr (R > 2) e.batch = x[0];
    if constexpr (R > 3) e.heads = x[1];
    e.steps = x[R - 2];
    e.pairs = cos[A - 1];
    e.rest = x[R - 1] - 2 * e.pairs;
    if constexpr (A > 2) e.angles_of_batch = e.steps * e.pairs;
    return e;
  }
  template <int R>
  static rotary_strides strides_of(const extents<R>& s) {
    return {R > 2 ? s[0] : 0, R > 3 ? s[R - 3] : 0, s[R - 2], s[R - 1]};
  }
};

#if SINTER_DEFINES
SINTER_SHARED void check_rotary(sinter::detail::shape_piece x, sinter::detail::shape_piece cos,
                                sinter::detail::shape_piece sin) {
  using sinter::detail::refuse;
  const index_t* const c = cos.extents + cos.rank - 2;
  for (int d = 0; d < cos.rank; ++d)
    if (cos.extents[d] != sin.extents[d])
      refuse<shape_error>({"rotary: cosines of shape ", cos, " and sines of shape ", sin});
  if (c[0] != x.extents[x.rank - 2] || (cos.rank == 3 && cos.extents[0] != x.extents[0]))
    refuse<shape_error>({"rotary: angles of shape ", cos, " do not fit an operand of shape ", x,
                         "; they have a row for each of its steps"});
  if (2 * c[1] > x.extents[x.rank - 1])
    refuse<shape_error>({"rotary: angles of shape ", cos, " turn ", 2 * c[1],
                         " elements of a row, and an operand of shape ", x, " has ", x.extents[x.rank - 1]});
}
#endif  // SINTER_DEFINES

}  // namespace ops

namespace detail {

/// Forward and backward of rotary; kernels<rotary_op, D>::turn(shape, work) does either.
template <device D>
struct rotary_kernels {
  template <class T, int R, class Epilogue, int A>
  static void forward(const ops::rotary_op& op, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, R, D>& x,
                      const tensor<T, A, D>& cos, const tensor<T, A, D>& sin) {
    run(op, x, cos, sin, y, 1, false);
  }
  template <class Backward>
  static void reverse(const ops::rotary_op& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    run(op, b.gradient(), b.template operand<1>(), b.template operand<2>(), dx.to, -1, dx.add);
  }

 private:
  template <class T, int R, int A>
  static void run(const ops::rotary_op& op, const tensor<T, R, D>& x, const tensor<T, A, D>& cos,
                  const tensor<T, A, D>& sin, const tensor<T, R, D>& y, int sign, bool add) {
    kernels<ops::rotary_op, D>::turn(
        x.shape(),
        ops::rotary_work<T>{op.extents_of(x.shape(), cos.shape()), op.strides_of(x.strides()),
                            op.strides_of(y.strides()), access::data(x), access::data(cos), access::data(sin),
                            access::data(y), static_cast<compute_type<T>>(sign), op.options.interleaved, add});
  }
};

}  // namespace detail

/// Pairs (a, b) of elements of each row of x turned by an angle: (a cos - b sin, b cos + a sin). x is (T,d), (N,T,d) or
/// (N,heads,T,d); cos and sin are (T,r/2), or (N,T,r/2) where samples have positions of their own, with r <= d;
/// elements from r on stay. So the product of a query and a key depends on how far apart they stand.
/// nn::rotary_positions makes cos and sin. Floating point; x may have any strides, and the result lies in memory as it
/// does. Derivative of x: g turned back; cos and sin have none. J. Su et al., "RoFormer", 2021. Errors: shape_error
/// where the angles do not fit.
///
///     const nn::rotary_positions turn(64, 0, 128);
///     tensor q = rotary(queries, turn.cos(), turn.sin());
template <class X, class C, class S>
  requires detail::takes_operands<ops::rotary_op, X, C, S>
detail::kernel_of<ops::rotary_op, X, C, S> rotary(X&& x, C&& cos, S&& sin, const rotary_options& options = {}) {
  return detail::make_kernel(ops::rotary_op(options), std::forward<X>(x), std::forward<C>(cos), std::forward<S>(sin));
}
template <class X, class C, class S, class Problem = typename detail::kernel_check<ops::rotary_op, X, C, S>::problem,
          class Fix = typename detail::kernel_check<ops::rotary_op, X, C, S>::fix>
void rotary(X&&, C&&, S&&, const rotary_options& = {}) = delete;

}  // namespace sinter

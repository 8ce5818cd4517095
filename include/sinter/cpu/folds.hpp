// sinter/cpu/folds.hpp: the kernels of reductions and scans on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/cpu/scan.hpp"
#include "sinter/ops/cummax.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::cpu_impl {

/// out = R folded over the values of K, of elements T, along the axes marked in `reduced`.
template <class R, class T, class K>
void fold_formula(const K& plan, const any_shape& shape, const leaf_ref* leaves, const bool* reduced,
                  typename R::result* out, const epilogue* after, thread_pool& pool) {
  operand in[pass_of<K::leaves + 1>], to[1];
  loop l = make_loop(forward_kernel<K, T>, &plan, shape, leaves, K::leaves, in);
  sink_ref dense;
  dense.element_size = sizeof(T);
  set_dense_output(l, dense, to);
  reduce<T>(R{}, sinter::detail::kernel::is_leaf<K>, l, reduced, out, pool, after);
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <class Fold, int N, int R, device D>
  requires is_cpu_v<D>
struct kernels<ops::reduce_op<Fold, N, R>, D> {
  template <class T, class X>
  static void forward(const ops::reduce_op<Fold, N, R>& op, const tensor<T, R, D>& y,
                      const typename backend<D>::epilogue* after, const X& x) {
    using U = element_of<X>;
    cpu_impl::fold_formula<typename Fold::template reducer<U>, U>(
        lower<false>(x), {x.shape().data(), N}, leaves_of<X>(x), op.axes.has, y.data(), after, backend<D>::pool());
  }
};

template <class Op, device D>
  requires(std::derived_from<Op, ops::scan_op> && is_cpu_v<D>)
struct kernels<Op, D> {
  template <class T, int R, class X>
  static void forward(const Op& op, const tensor<T, R, D>& y, const typename backend<D>::epilogue* after, const X& x) {
    using reducer = typename Op::template reducer<element_of<X>>;
    scan<reducer>(x, op.axis, scan_results<reducer>{y.data()}, after);
  }
  /// Values and indices of a fold that finds both.
  template <class T, int R, class X>
  static void run(const Op& op, const X& x, const tensor<T, R, D>& values, const tensor<std::int64_t, R, D>& indices) {
    scan<typename Op::template reducer<T>>(x, op.axis, scan_extremes<T>{values.data(), indices.data()}, nullptr);
  }

 private:
  template <class Reducer, class X, class Out>
  static void scan(const X& x, int axis, const Out& out, const typename backend<D>::epilogue* after) {
    cpu_impl::with_producer(x, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::scan<Reducer, element_of<X>>(l, is_leaf, axis, out, backend<D>::pool(), after);
    });
  }
};

}  // namespace sinter::detail

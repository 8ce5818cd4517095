// sinter/cuda/folds.hpp: the kernels of reductions and scans on GPUs.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/scan.hpp"
#include "sinter/ops/cummax.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::detail {

template <class Fold, int N, int R, device D>
  requires is_cuda_v<D>
struct kernels<ops::reduce_op<Fold, N, R>, D> {
  template <class T, class Epilogue, class X>
  static void forward(const ops::reduce_op<Fold, N, R>& op, const tensor<T, R, D>& y, const Epilogue* after,
                      const X& x) {
    const auto put = [&] {
      if constexpr (requires { after->finish(access::data(y)); }) return after->finish(access::data(y));
      else return cuda_impl::store_results<T>{access::data(y)};
    }();
    const auto plan = lower<false>(x);
    const leaves_of<X> leaves(x);
    cuda_impl::reduce_on<D, typename Fold::template reducer<element_of<X>>, N>(
        "a reduction", plan, cuda_impl::axes_of<decltype(plan)::leaves>({x.shape().data(), N}, leaves), op.axes.has,
        put);
  }
};

template <class Op, device D>
  requires(std::derived_from<Op, ops::scan_op> && is_cuda_v<D>)
struct kernels<Op, D> {
  template <class T, int R, class X>
  static void forward(const Op& op, const tensor<T, R, D>& y, const typename backend<D>::epilogue* after, const X& x) {
    using reducer = typename Op::template reducer<element_of<X>>;
    scan<reducer>(x, op.axis, scan_results<reducer>{access::data(y)});
    if (after != nullptr) after->run();
  }
  /// Values and indices of a fold that finds both.
  template <class T, int R, class X>
  static void run(const Op& op, const X& x, const tensor<T, R, D>& values, const tensor<std::int64_t, R, D>& indices) {
    scan<typename Op::template reducer<T>>(x, op.axis, scan_extremes<T>{access::data(values), access::data(indices)});
  }

 private:
  template <class Reducer, class X, class Out>
  static void scan(const X& x, int axis, const Out& out) {
    const cuda_impl::work what{"a scan", x.shape()};
    std::vector<temporary<D>> folds;
    cuda_impl::plan_scan<Reducer>(
        cuda_impl::source_of(x), around_axis(x.shape().data(), X::rank, axis), out,
        [&what](const auto& body, const cuda_impl::launch_shape& s) { cuda_impl::launch_on<D>(what, body, s); },
        [&folds](std::size_t bytes) { return folds.emplace_back(bytes).data(); },
        [&what, &out](const auto& source, index_t rows, index_t n) {
          return cuda_impl::gpu<D>::folds().template scan<Reducer>(what, source, rows, n, out);
        });
  }
};

}  // namespace sinter::detail

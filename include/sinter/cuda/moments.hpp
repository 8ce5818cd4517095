// sinter/cuda/moments.hpp: mean and variance of channels on GPUs. Plain kernels, not tuned.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/batch_moments.hpp"

namespace sinter::cuda_impl {

/// Joins two sets of n and m numbers, of which there are the mean and the sum of squared distances from it.
template <class C>
SINTER_WORD void merge_moments(C& mean, C& squares, C n, C other_mean, C other_squares, C m) {
  const C distance = other_mean - mean;
  mean += distance * (m / (n + m));
  squares += other_squares + distance * distance * (n / (n + m) * m);
}

/// A thread for a column of a part of the rows: neighbouring threads read neighbouring columns.
template <class T>
struct column_moments_body {
  using C = compute_type<T>;
  const T* x;
  C* partial;  ///< (part, mean and squares, column)
  index_t rows, columns, part_rows, parts;

  SINTER_WORD index_t numel() const { return parts * columns; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t i = g.block() * g.threads() + g.thread(); i < numel(); i += g.blocks() * g.threads()) {
      const index_t part = i / columns, column = i - part * columns;
      const index_t begin = part * part_rows, end = begin + part_rows < rows ? begin + part_rows : rows;
      C mean = 0, squares = 0, n = 0;
      for (index_t r = begin; r < end; ++r) {
        const C v = static_cast<C>(x[r * columns + column]), distance = v - mean;
        n += C(1);
        mean += distance / n;
        squares += distance * (v - mean);
      }
      partial[2 * part * columns + column] = mean;
      partial[(2 * part + 1) * columns + column] = squares;
    }
  }
};

/// A thread for a column, which goes over the parts in their order.
template <class C>
struct merge_moments_body {
  const C* partial;
  C *mean, *variance;
  index_t rows, columns, part_rows, parts;

  SINTER_WORD index_t numel() const { return columns; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t c = g.block() * g.threads() + g.thread(); c < columns; c += g.blocks() * g.threads()) {
      C m = 0, s = 0, n = 0;
      for (index_t part = 0; part < parts; ++part) {
        const index_t left = rows - part * part_rows;
        const C more = static_cast<C>(left < part_rows ? left : part_rows);
        merge_moments(m, s, n, partial[2 * part * columns + c], partial[(2 * part + 1) * columns + c], more);
        n += more;
      }
      mean[c] = rows > 0 ? m : std::numeric_limits<C>::quiet_NaN();
      variance[c] = rows > 0 ? s / n : std::numeric_limits<C>::quiet_NaN();
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::batch_moments_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::batch_moments_op&, const tensor<compute_type<T>, 2, D>& y, const Epilogue*,
                      const tensor<T, R, D>& x) {
    using C = compute_type<T>;
    const auto pixels = pixel_by_pixel(x);
    const index_t columns = x.shape()[1], rows = columns > 0 ? x.numel() / columns : 0;
    if (columns == 0) return;
    const index_t part_rows = rows > 64 * 1024 ? (rows + 1023) / 1024 : 64, parts = (rows + part_rows - 1) / part_rows;
    const auto partial = tensor<C, 1, D>::uninitialized({{2 * parts * columns}});
    const cuda_impl::column_moments_body<T> of_parts{
        access::data(pixels), access::data(partial), rows, columns, part_rows, parts};
    const cuda_impl::merge_moments_body<C> of_all{
        access::data(partial), access::data(y), access::data(y) + columns, rows, columns, part_rows, parts};
    if (of_parts.numel() > 0)
      cuda_impl::launch_on<D>({"batch_moments", x.shape()}, of_parts,
                              {cuda_impl::blocks_for(of_parts.numel(), cuda_impl::block_threads), 0});
    cuda_impl::launch_on<D>({"batch_moments", x.shape()}, of_all,
                            {cuda_impl::blocks_for(columns, cuda_impl::block_threads), 0});
  }
  template <class Backward>
  static void reverse(const ops::batch_moments_op&, const Backward& b) {
    reverse_batch_moments(b);
  }
};

}  // namespace sinter::detail

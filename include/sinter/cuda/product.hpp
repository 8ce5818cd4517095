// sinter/cuda/product.hpp: matrix products, handed to a BLAS where it takes them.
#pragma once

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

using sinter::detail::matrix_ref;

/// How a BLAS, which counts by columns, sees a row-major matrix: as its transpose, unless the matrix is one itself.
struct column_major {
  bool fits = false;
  bool turned = false;
  index_t leading = 1;

  explicit column_major(const matrix_ref& a) {
    const index_t rows = a.rows, columns = a.columns;
    if ((a.column_stride == 1 || columns <= 1) && (a.row_stride >= columns || rows <= 1)) {
      fits = true;
      leading = rows <= 1 ? columns : a.row_stride;
    } else if ((a.row_stride == 1 || rows <= 1) && (a.column_stride >= rows || columns <= 1)) {
      fits = turned = true;
      leading = columns <= 1 ? rows : a.column_stride;
    }
    if (leading < 1) leading = 1;
  }
};

/// c (+)= a b for any element type and strides: a thread per element, for what a BLAS does not do. Integers wrap.
template <class T>
struct plain_product_body {
  using word = std::conditional_t<floating_element<T>, compute_type<T>, std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>>;
  matrix_ref a, b, c;
  bool accumulate;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    for (index_t e = g.block() * g.threads() + g.thread(); e < c.rows * c.columns; e += stride) {
      const index_t i = e / c.columns, j = e - i * c.columns;
      T& to = static_cast<T*>(c.data)[i * c.row_stride + j * c.column_stride];
      word sum = accumulate ? static_cast<word>(to) : word(0);
      for (index_t p = 0; p < a.columns; ++p)
        sum += static_cast<word>(static_cast<const T*>(a.data)[i * a.row_stride + p * a.column_stride]) *
               static_cast<word>(static_cast<const T*>(b.data)[p * b.row_stride + j * b.column_stride]);
      to = static_cast<T>(sum);
    }
  }
};

/// c (+)= a b. gpu<D>::gemm(a_turned, b_turned, m, n, k, a, lda, b, ldb, beta, c, ldc) is that of a BLAS, for
/// floating-point elements: column-major c (m,n) = a (m,k) b (k,n) + beta c, sums of half and bfloat16 in float.
template <class T, device D>
void multiply(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate) {
  if (c.rows * c.columns == 0) return;
  const column_major left(a), right(b), to(c);
  if constexpr (floating_element<T>) {
    if (left.fits && right.fits && to.fits && !to.turned && a.columns > 0) {
      gpu<D>::gemm(right.turned, left.turned, c.columns, c.rows, a.columns, static_cast<const T*>(b.data), right.leading,
                   static_cast<const T*>(a.data), left.leading, compute_type<T>(accumulate ? 1 : 0), static_cast<T*>(c.data), to.leading);
      return;
    }
  }
  gpu<D>::launch("matmul", plain_product_body<T>{a, b, c, accumulate}, {blocks_for(c.rows * c.columns, block_threads), 0});
}

}  // namespace sinter::cuda_impl

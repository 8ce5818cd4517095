// sinter/cuda/product.hpp: matrix products, handed to a BLAS where it takes them, with what follows them.
#pragma once

#include "sinter/cuda/space.hpp"
#include "sinter/cuda/spill.hpp"

namespace sinter::ops {
struct add_op;
struct relu_op;
struct gelu_tanh_op;
}  // namespace sinter::ops

namespace sinter::cuda_impl {

using sinter::detail::matrix_ref;

/// What a BLAS can do to a product before it writes it: act(product + bias). Or, in backward, product * act'(what
/// forward has kept), and sums for the gradient of a bias.
struct product_tail {
  enum class activation { none, relu, gelu_tanh };
  enum class summed { none, product, left, right };

  const void* bias = nullptr;  ///< one value for each column of the row-major product
  activation act = activation::none;
  bool slope = false;    ///< act', not act
  void* kept = nullptr;  ///< written in forward, or null; read for a slope. See kept_leading
  summed of =
      summed::none;  ///< of the row-major product, over its rows; of a factor, over the axis that the product sums
  void* sums = nullptr;

  bool empty() const { return bias == nullptr && act == activation::none && of == summed::none; }

  /// What is kept has a row for each of the row-major product: signs of relu, a bit each, or the argument of gelu_tanh.
  /// This is how many columns it has.
  index_t kept_leading(index_t columns) const {
    const index_t whole = act == activation::relu ? 128 : 8;
    return (columns + whole - 1) / whole * whole;
  }
  std::size_t kept_bytes(index_t rows, index_t columns, std::size_t element_size) const {
    const auto elements = static_cast<std::size_t>(rows * kept_leading(columns));
    return act == activation::relu ? elements / 8 : elements * element_size;
  }
};

/// Whether the formula K over a product is such a tail. The product is one of its leaves.
template <class K>
struct tail_formula {
  static constexpr bool fits = false;
};
template <class T>
struct tail_formula<sinter::detail::kernel::leaf<T, false>> {
  static constexpr bool fits = true;
  static constexpr auto act = product_tail::activation::none;
};
template <class T>
struct tail_formula<sinter::detail::kernel::map<ops::add_op, sinter::detail::kernel::leaf<T, false>,
                                                sinter::detail::kernel::leaf<T, false>>>
    : tail_formula<sinter::detail::kernel::leaf<T, false>> {};
template <class K>
  requires(tail_formula<K>::fits && tail_formula<K>::act == product_tail::activation::none)
struct tail_formula<sinter::detail::kernel::map<ops::relu_op, K>> : tail_formula<K> {
  static constexpr auto act = product_tail::activation::relu;
};
template <class K>
  requires(tail_formula<K>::fits && tail_formula<K>::act == product_tail::activation::none)
struct tail_formula<sinter::detail::kernel::map<ops::gelu_tanh_op, K>> : tail_formula<K> {
  static constexpr auto act = product_tail::activation::gelu_tanh;
};

/// K, elementwise work on the product of shape (rows,columns) that lies in `sink`, as a tail; an empty one where it is
/// none: another formula, or a second operand that is no dense row of `columns` values, of rank 1 if `must_keep`.
template <class K>
product_tail tail_of(index_t columns, const leaf_ref* leaves, const sink_ref& sink, bool must_keep) {
  product_tail tail;
  if constexpr (tail_formula<K>::fits) {
    if constexpr (K::leaves == 2) {
      const leaf_ref& bias = leaves[leaves[0].data == sink.data ? 1 : 0];
      constexpr std::uintptr_t alignment = 16;  // of the vector loads in its kernels
      if (bias.data == sink.data || bias.rank < 1 || (must_keep && bias.rank > 1) ||
          reinterpret_cast<std::uintptr_t>(bias.data) % alignment != 0)
        return tail;
      const int last = bias.rank - 1;
      if (bias.shape[last] != columns || (bias.strides[last] != 1 && columns > 1)) return tail;
      if (last == 1 && bias.shape[0] != 1) return tail;
      tail.bias = bias.data;
    }
    tail.act = tail_formula<K>::act;
  }
  return tail;
}

/// How a BLAS, which counts by columns, sees a row-major matrix: as its transpose, unless the matrix is one itself.
struct column_major {
  bool fits = false;
  bool turned = false;
  index_t leading = 1;

  explicit column_major(const matrix_ref& a) {
    const index_t rows = a.rows, columns = a.columns;
    if (a.batch_stride < 0) return;  // nothing says that a BLAS can go backwards
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

/// What a BLAS is asked for, column-major: d (m,n) = act(a (m,k) b (k,n) + bias (m)), or with `accumulate` + d; for
/// each matrix of the batch. Its a is the right factor of the row-major product.
struct blas_product {
  struct operand {
    void* data;
    index_t leading, batch_stride;
    bool turned;  ///< lies transposed

    operand(const matrix_ref& m, const column_major& seen)
        : data(m.data), leading(seen.leading), batch_stride(m.batch_stride), turned(seen.turned) {}
  };
  index_t m, n, k, batches;
  operand a, b, d;
  bool accumulate;
  product_tail tail;
};

/// c (+)= a b for any element type T, into elements To, and strides: a thread per element, for what a BLAS does not do.
/// Integers wrap.
template <class T, class To = T>
struct strided_product_body {
  using word = std::conditional_t<floating_element<T>, compute_type<T>,
                                  std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>>;
  matrix_ref a, b, c;
  bool accumulate;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads(), each = c.rows * c.columns;
    for (index_t e = g.block() * g.threads() + g.thread(); e < c.batches * each; e += stride) {
      const index_t batch = e / each, i = (e - batch * each) / c.columns, j = e - batch * each - i * c.columns;
      const T* const x = static_cast<const T*>(a.data) + batch * a.batch_stride + i * a.row_stride;
      const T* const y = static_cast<const T*>(b.data) + batch * b.batch_stride + j * b.column_stride;
      To& to = static_cast<To*>(c.data)[batch * c.batch_stride + i * c.row_stride + j * c.column_stride];
      word sum = accumulate ? static_cast<word>(to) : word(0);
      for (index_t p = 0; p < a.columns; ++p)
        sum += static_cast<word>(x[p * a.column_stride]) * static_cast<word>(y[p * b.row_stride]);
      to = static_cast<To>(sum);
    }
  }
};

/// c (+)= a b with its tail by a BLAS: gpu<D>::gemm<T, To>(product), for floating-point elements, with sums of half and
/// bfloat16 in float. False, and nothing is done, where it does not take them.
template <class T, device D, class To = T>
bool multiply_by_blas(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                      const product_tail& tail) {
  if constexpr (floating_element<T>) {
    const column_major left(a), right(b), to(c);
    if (left.fits && right.fits && to.fits && !to.turned && a.columns > 0)
      return gpu<D>::template gemm<T, To>(
          blas_product{c.columns, c.rows, a.columns, c.batches, {b, right}, {a, left}, {c, to}, accumulate, tail});
  }
  return false;
}

/// c (+)= a b, of elements To: T, or the type in which T is computed.
template <class T, device D, class To = T>
void multiply(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate) {
  if (c.batches * c.rows * c.columns == 0 || multiply_by_blas<T, D, To>(a, b, c, accumulate, {})) return;
  const index_t shape[] = {c.batches, c.rows, c.columns};
  launch_on<D>({"matmul", shape, 3}, strided_product_body<T, To>{a, b, c, accumulate},
               {blocks_for(c.batches * c.rows * c.columns, block_threads), 0});
}

}  // namespace sinter::cuda_impl

// sinter/cpu/detail/gemm_narrow.hpp: products of half and bfloat16, computed in float.
//
// Both operands are widened once, which costs their size where the product costs size times extent; each tile of the
// float product is rounded to its place while it is in cache.
#pragma once

#include "sinter/core/arena.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl {

template <class T>
void gemm(const gemm_args<T>& args, thread_pool& pool);

namespace detail {

template <class T>
struct narrow_product {
  const gemm_args<T>& args;
  thread_pool& pool;

  void compute() const {
    const auto& x = args;
    const floats a(x.m * x.k), b(x.k * x.n), c(x.m * x.n);
    const strides of_a = widen(x.a, x.m, x.k, {x.a_row, x.a_col}, a.data()),
                  of_b = widen(x.b, x.k, x.n, {x.b_row, x.b_col}, b.data());
    if (x.accumulate) widen(x.c, x.m, x.n, {x.ldc, 1}, c.data());
    rounding finish{args, c.data()};
    const tile_epilogue round{&rounding::tile, &finish};
    gemm<float>({x.m, x.n, x.k, a.data(), of_a.row, of_a.column, b.data(), of_b.row, of_b.column, c.data(), x.n,
                 x.accumulate, round},
                pool);
  }

 private:
  static constexpr int lanes = math::native_lanes;
  struct strides {
    index_t row, column;
  };

  struct floats {
    explicit floats(index_t n) : memory(static_cast<std::size_t>(n) * sizeof(float)) {}
    float* data() const { return static_cast<float*>(memory.data()); }
    sinter::detail::temporary<cpu> memory;
  };

  /// The matrix in dense float memory, and where it lies there: by columns if it lay so before.
  strides widen(const T* from, index_t rows, index_t columns, const strides& at, float* to) const {
    if (at.row == 1 && at.column != 1) {
      widen(from, columns, rows, {at.column, at.row}, to);
      return {1, rows};
    }
    const index_t together = 65536 / columns + 1;
    pool.parallel_for(ceil_div(rows, together), [&](index_t task) {
      for (index_t r = task * together, end = smaller(r + together, rows); r < end; ++r) {
        const T* const x = from + r * at.row;
        float* const y = to + r * columns;
        index_t c = 0;
        for (; at.column == 1 && c + lanes <= columns; c += lanes) math::read<lanes>(x + c).store(y + c);
        for (; c < columns; ++c) y[c] = x[c * at.column];
      }
    });
    return {columns, 1};
  }

  /// The epilogue of the float product, before that of the product itself.
  struct rounding {
    const gemm_args<T>& args;
    const float* made;

    static void tile(void* self, index_t r0, index_t r1, index_t c0, index_t c1) {
      const auto& [args, made] = *static_cast<const rounding*>(self);
      for (index_t r = r0; r < r1; ++r) {
        const float* const x = made + r * args.n;
        T* const y = args.c + r * args.ldc;
        index_t c = c0;
        for (; c + lanes <= c1; c += lanes) math::write(y + c, math::simd<float, lanes>::load(x + c));
        for (; c < c1; ++c) y[c] = x[c];
      }
      args.after(r0, r1, c0, c1);
    }
  };
};

}  // namespace detail
}  // namespace sinter::cpu_impl

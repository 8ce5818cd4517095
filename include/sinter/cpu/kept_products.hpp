// sinter/cpu/kept_products.hpp: products and convolutions with weights that a prepared model keeps, packed or rounded.
#pragma once

#include "sinter/cpu/convolution.hpp"

namespace sinter::cpu_impl {

namespace detail {
template <class T>
struct group_call;
}

/// patches * weights for one group, with weights that a prepared model rounds to 8 bits.
template <class T>
void convolve_rounded(const detail::group_call<T>& call, thread_pool& pool);
/// A product with a form of B that is kept; `done` tells whether it was computed.
template <class T>
void multiply_kept(const gemm_args<T>& args, thread_pool& pool, bool& done);

}  // namespace sinter::cpu_impl

#if SINTER_DEFINES

#include "sinter/cpu/detail/int8_dots.hpp"

namespace sinter::cpu_impl {

template <class T>
void convolve_rounded(const detail::group_call<T>& call, thread_pool& pool) {
  using namespace detail;
  const auto& [image, w, c, first_column, depthwise, add, finish] = call;
  patches<T> a = image;
  using sinter::detail::form_of;
  if (depthwise) {
    const form_of<of_rounded<T, weight_rows<T>>> taps(w.key(), w);
    return depthwise_product<T>{a, *taps, c, add, finish}.compute(pool);
  }
  if (const winograd_cut cut = winograd_of(a, w, true)) {
    const form_of<of_rounded<T, packed_points<T>>> packed(w.key(cut.tile, cut.taps), w, cut, std::ref(pool));
    return winograd_product<T>(a, *packed, c, first_column, add, finish).compute(pool);
  }
  const bool are_dense_rows = a.is_image() && !a.is_made() && c.step[2] == c.row_length && c.offset == 0;
  if (are_dense_rows && int8_dot_product<T>::suits(w.channels, sinter::detail::forms_of(w.data))) {
    const form_of<int8_dot_weights<T>> numbers(w.key(), w, std::ref(pool));
    return int8_dot_product<T>{a.data,       a.rows(), a.pixel_stride, *numbers,    c.data + first_column,
                               c.row_length, add,      finish,         first_column}
        .compute(pool);
  }
  const form_of<int8_weights<T>> rounded(w.key(), w, std::ref(pool));
  if (call.has_few_pixels())
    return int8_few_rows<T>{a.data,       a.rows(), a.pixel_stride, *rounded,    c.data + first_column,
                            c.row_length, add,      finish,         first_column}
        .compute(pool);
  patch_product<T>(a, weight_strips<T>(*rounded), c, first_column, add, finish).compute(pool);
}

namespace detail {

/// C = [C +] A B, where a form of B is kept and the rows of A are contiguous: packing B is paid once. A product that
/// reads B once, as that with a vector, gains nothing unless B is rounded.
template <class T>
struct kept_product {
  const gemm_args<T>& args;
  thread_pool& pool;

  /// Computes the product; false where it is not of this kind.
  bool compute() {
    if (args.a_col != 1 || args.k <= 0) return false;
    const sinter::detail::weight_forms* const kept = sinter::detail::forms_of(args.b);
    if (kept == nullptr) return false;
    const weight_source<T> weights{args.b, {1, 1, 1}, {0, 0, 0}, args.k, args.b_row, args.n, args.b_col};
    const conv_finish<T> finish{nullptr, args.after};
    if constexpr (rounds_weights<T>) {
      if (are_rounded(kept)) {
        if (int8_dot_product<T>::suits(args.k, kept)) {
          const sinter::detail::form_of<int8_dot_weights<T>> numbers(weights.key(), weights, std::ref(pool));
          int8_dot_product<T>{args.a, args.m, args.a_row, *numbers, args.c, args.ldc, args.accumulate, finish}.compute(
              pool);
          return true;
        }
        const sinter::detail::form_of<int8_weights<T>> rounded(weights.key(), weights, std::ref(pool));
        if (args.m <= int8_few_rows<T>::most_rows)
          int8_few_rows<T>{args.a, args.m, args.a_row, *rounded, args.c, args.ldc, args.accumulate, finish}.compute(
              pool);
        else multiply(weight_strips<T>(*rounded), finish);
        return true;
      }
    }
    if (args.b_row == 1 && args.m <= 4) return false;
    const sinter::detail::form_of<packed_weights<T>> packed(weights.key(), weights, std::ref(pool));
    multiply(*packed, finish);
    return true;
  }

 private:
  void multiply(const weight_strips<T>& b, const conv_finish<T>& finish) {
    const conv_axis one{1, 1, 1, 1, 1, 0}, rows{args.m, args.m, 1, 1, 1, 0}, axes[] = {one, one, rows};
    patches<T> left(conv_image<T>(args.a), 1, args.a_row, args.k, axes);
    const result_rows<T> to{args.c, 0, {0, 0, args.ldc}, args.ldc, 0};
    patch_product<T>(left, b, to, 0, args.accumulate, finish).compute(pool);
  }
};

}  // namespace detail

template <class T>
void multiply_kept(const gemm_args<T>& args, thread_pool& pool, bool& done) {
  done = detail::kept_product<T>{args, pool}.compute();
}

}  // namespace sinter::cpu_impl

#endif  // SINTER_DEFINES

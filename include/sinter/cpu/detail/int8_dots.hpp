// sinter/cpu/detail/int8_dots.hpp: products of whole numbers of 8 bits, where the processor has instructions for them.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#include "sinter/core/fork.hpp"
#include "sinter/cpu/detail/int8_weights.hpp"
#include "sinter/cpu/instruction_set.hpp"

namespace sinter::cpu_impl::detail {

/// The widths of what the kernels multiply: four k of a column lie side by side, and those of 16 columns.
inline constexpr index_t int8_step = 4, int8_columns = 16;
/// The most rows that a call of a kernel multiplies.
inline constexpr index_t int8_rows = 8;

/// sums(r, column) = sum over k of (row r of a)(k) b(k, column), for `rows` rows `a_stride` bytes apart and 16 columns;
/// `steps` times four k. Where `shifted`, the bytes of a are its numbers plus 128, without a sign.
struct int8_kernel {
  using function = void (*)(index_t rows, index_t steps, const std::int8_t* a, index_t a_stride, const std::int8_t* b,
                            std::int32_t* sums);
  const char* name = nullptr;
  function run = nullptr;
  bool shifted = false;

  explicit operator bool() const { return run != nullptr; }
};

#if defined(__x86_64__)
// These use the compiler's own vectors and name one instruction. <immintrin.h> would take a fifteenth of the time that
// reading the whole library takes.
#define SINTER_TARGET_VNNI512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
template <int Rows>
SINTER_TARGET_VNNI512 void int8_rows_vnni512(index_t steps, const std::int8_t* a, index_t a_stride,
                                             const std::int8_t* b, std::int32_t* sums) {
  typedef std::int32_t lanes __attribute__((vector_size(64)));
  lanes sum[std::size_t{Rows}];
  SINTER_UNROLL
  for (int r = 0; r < Rows; ++r) sum[r] = lanes{};
  for (; steps > 0; --steps, a += int8_step, b += 64) {
    lanes right;
    std::memcpy(&right, b, sizeof right);
    SINTER_UNROLL
    for (int r = 0; r < Rows; ++r) {
      std::int32_t left = 0;
      std::memcpy(&left, a + r * a_stride, sizeof left);
      const lanes all = left - lanes{};
      asm("vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+v"(sum[r]) : "v"(all), "v"(right));
    }
  }
  SINTER_UNROLL
  for (int r = 0; r < Rows; ++r) std::memcpy(sums + r * int8_columns, &sum[r], sizeof sum[r]);
}
inline void int8_vnni512(index_t rows, index_t steps, const std::int8_t* a, index_t a_stride, const std::int8_t* b,
                         std::int32_t* sums) {
  for (; rows >= 8; rows -= 8, a += 8 * a_stride, sums += 8 * int8_columns)
    int8_rows_vnni512<8>(steps, a, a_stride, b, sums);
  for (; rows >= 4; rows -= 4, a += 4 * a_stride, sums += 4 * int8_columns)
    int8_rows_vnni512<4>(steps, a, a_stride, b, sums);
  for (; rows > 0; --rows, a += a_stride, sums += int8_columns) int8_rows_vnni512<1>(steps, a, a_stride, b, sums);
}

#define SINTER_TARGET_VNNI256 __attribute__((target("avx2,avxvnni")))
template <int Rows>
SINTER_TARGET_VNNI256 void int8_rows_vnni256(index_t steps, const std::int8_t* a, index_t a_stride,
                                             const std::int8_t* b, std::int32_t* sums) {
  typedef std::int32_t lanes __attribute__((vector_size(32)));
  lanes sum[std::size_t{2 * Rows}];
  SINTER_UNROLL
  for (int i = 0; i < 2 * Rows; ++i) sum[i] = lanes{};
  for (; steps > 0; --steps, a += int8_step, b += 64) {
    lanes low, high;
    std::memcpy(&low, b, sizeof low);
    std::memcpy(&high, b + 32, sizeof high);
    SINTER_UNROLL
    for (int r = 0; r < Rows; ++r) {
      std::int32_t left = 0;
      std::memcpy(&left, a + r * a_stride, sizeof left);
      const lanes all = left - lanes{};
      asm("%{vex%} vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+x"(sum[2 * r]) : "x"(all), "x"(low));
      asm("%{vex%} vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+x"(sum[2 * r + 1]) : "x"(all), "x"(high));
    }
  }
  SINTER_UNROLL
  for (int i = 0; i < 2 * Rows; ++i) std::memcpy(sums + i * 8, &sum[i], sizeof sum[i]);
}
inline void int8_vnni256(index_t rows, index_t steps, const std::int8_t* a, index_t a_stride, const std::int8_t* b,
                         std::int32_t* sums) {
  for (; rows >= 4; rows -= 4, a += 4 * a_stride, sums += 4 * int8_columns)
    int8_rows_vnni256<4>(steps, a, a_stride, b, sums);
  for (; rows > 0; --rows, a += a_stride, sums += int8_columns) int8_rows_vnni256<1>(steps, a, a_stride, b, sums);
}
#elif defined(__aarch64__)
#if defined(__clang__)
#define SINTER_TARGET_DOTS __attribute__((target("dotprod")))
#else
#define SINTER_TARGET_DOTS __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
template <int Rows>
SINTER_TARGET_DOTS void int8_rows_neon(index_t steps, const std::int8_t* a, index_t a_stride, const std::int8_t* b,
                                       std::int32_t* sums) {
  int32x4_t sum[std::size_t{4 * Rows}];
  SINTER_UNROLL
  for (int i = 0; i < 4 * Rows; ++i) sum[i] = vdupq_n_s32(0);
  for (; steps > 0; --steps, a += int8_step, b += 64) {
    SINTER_UNROLL
    for (int r = 0; r < Rows; ++r) {
      std::int32_t left = 0;
      std::memcpy(&left, a + r * a_stride, sizeof left);
      const int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(left));
      SINTER_UNROLL
      for (int i = 0; i < 4; ++i) sum[4 * r + i] = vdotq_s32(sum[4 * r + i], vld1q_s8(b + 16 * i), all);
    }
  }
  SINTER_UNROLL
  for (int i = 0; i < 4 * Rows; ++i) vst1q_s32(sums + 4 * i, sum[i]);
}
inline void int8_neon(index_t rows, index_t steps, const std::int8_t* a, index_t a_stride, const std::int8_t* b,
                      std::int32_t* sums) {
  for (; rows >= 4; rows -= 4, a += 4 * a_stride, sums += 4 * int8_columns)
    int8_rows_neon<4>(steps, a, a_stride, b, sums);
  for (; rows > 0; --rows, a += a_stride, sums += int8_columns) int8_rows_neon<1>(steps, a, a_stride, b, sums);
}
#endif
#undef SINTER_TARGET_VNNI512
#undef SINTER_TARGET_VNNI256
#undef SINTER_TARGET_DOTS

/// Calls f(kernel) for the kernels that this processor has instructions for, the fastest first.
template <class F>
void for_int8_kernels(const F& f) {
#if defined(__x86_64__)
  const bool has_512 = sinter::detail::processor_has(instruction_set::avx512) && __builtin_cpu_supports("avx512vnni");
  if (has_512) f(int8_kernel{"avx512-vnni", &int8_vnni512, true});
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_256 = sinter::detail::processor_has(instruction_set::avx2) &&
                       __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
  if (has_256) f(int8_kernel{"avx-vnni", &int8_vnni256, true});
#elif defined(__aarch64__) && defined(__linux__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) f(int8_kernel{"neon-dot", &int8_neon, false});
#elif defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
  f(int8_kernel{"neon-dot", &int8_neon, false});
#endif
  static_cast<void>(f);
}

/// The fastest of them; none where the processor has none.
inline const int8_kernel& best_int8_kernel() {
  static constinit std::atomic<int8_kernel*> best{
      nullptr};  // not a static that is locked while it begins: see make_once
  return sinter::detail::make_once(best, [] {
    auto* const first = new int8_kernel;
    for_int8_kernels([first](const int8_kernel& k) {
      if (!*first) *first = k;
    });
    return first;
  });
}

/// A matrix (k, column) in whole numbers as the kernels read it: strips of 16 columns, in each of them four k of a
/// column side by side; with the scale and the sum of each column.
template <class T>
class int8_dot_weights {
 public:
  int8_dot_weights(const weight_source<T>& w, thread_pool& pool)
      : k(w.channels),
        columns(w.columns),
        steps(ceil_div(k, int8_step)),
        strips(ceil_div(columns, int8_columns)),
        numbers_(strips * steps * int8_step * int8_columns),
        scales_(strips * int8_columns),
        sums_(strips * int8_columns) {
    const temporary_array<double> errors(strips);
    pool.parallel_for(strips, [&](index_t s) { errors[s] = round_strip(w, s); });
    for (index_t s = 0; s < strips; ++s) error_ = larger_or_nan(error_, errors[s]);
  }

  const index_t k, columns, steps, strips;

  const std::int8_t* strip(index_t s) const { return numbers_.data() + s * steps * int8_step * int8_columns; }
  const T* scales(index_t s) const { return scales_.data() + s * int8_columns; }
  const std::int32_t* sums(index_t s) const { return sums_.data() + s * int8_columns; }
  index_t bytes() const {
    return strips * int8_columns * (steps * int8_step + static_cast<index_t>(sizeof(T) + sizeof(std::int32_t)));
  }
  /// Of the column that is farthest off.
  double error() const { return error_; }

 private:
  double round_strip(const weight_source<T>& w, index_t s) {
    double worst = 0;
    for (index_t j = 0; j < int8_columns; ++j) {
      const index_t column = s * int8_columns + j;
      const T* const from = w.data + smaller(column, columns - 1) * w.column_stride;
      rounding_error error;
      const T scale = column_scale(w, smaller(column, columns - 1));
      std::int32_t sum = 0;
      std::int8_t* const to = numbers_.data() + s * steps * int8_step * int8_columns + j * int8_step;
      for (index_t i = 0; i < steps * int8_step; ++i) {
        const bool is_there = column < columns && i < k;
        const std::int8_t q = is_there ? to_int8(from[i * w.channel_stride], scale) : std::int8_t{0};
        to[i / int8_step * int8_step * int8_columns + i % int8_step] = q;
        sum += q;
        if (is_there)
          error.add(static_cast<double>(from[i * w.channel_stride]),
                    static_cast<double>(q) * static_cast<double>(scale));
      }
      scales_[s * int8_columns + j] = scale;
      sums_[s * int8_columns + j] = sum;
      worst = larger_or_nan(worst, error.relative());
    }
    return worst;
  }

  temporary_array<std::int8_t> numbers_;
  temporary_array<T> scales_;
  temporary_array<std::int32_t> sums_;
  double error_ = 0;
};

/// y(r, column) = [y +] sum over k of x(r, k) w(k, column), where each row of x is rounded to 8 bits by a scale of its
/// own. A row with an element that is not finite becomes NaN, one of denormal numbers 0.
template <class T>
struct int8_dot_product {
  static constexpr index_t longest = index_t{1} << 16;  ///< k, or sums would not fit 32 bits
  static constexpr index_t rows_per_task = 4 * int8_rows;
  static constexpr index_t least_products = 262144;  ///< of a task, where there are too few rows

  static bool suits(index_t k, const sinter::detail::weight_forms* kept) {
    return kept->precision() == sinter::detail::weight_precision::int8 && k < longest && best_int8_kernel();
  }

  const T* x;
  index_t rows, x_stride;
  const int8_dot_weights<T>& w;
  T* y;
  index_t y_stride;
  bool add;
  const conv_finish<T>& finish;  ///< over rows from 0 and columns from `first_column` on
  index_t first_column = 0;
  const int8_kernel& kernel = best_int8_kernel();

  void compute(thread_pool& pool) const {
    const index_t width = w.steps * int8_step;
    const temporary_array<std::int8_t> numbers(rows * width);
    const temporary_array<T> scales(rows);
    const index_t blocks = ceil_div(rows, rows_per_task), wanted = 3 * pool.size();
    pool.parallel_for(blocks, [&](index_t task) {
      for (index_t r = task * rows_per_task; r < smaller((task + 1) * rows_per_task, rows); ++r)
        scales[r] = round_row(x + r * x_stride, numbers.data() + r * width);
    });
    const index_t of_block = smaller(rows, rows_per_task) * width * int8_columns;
    const index_t most_parts = ceil_div(w.strips, ceil_div(least_products, of_block > 0 ? of_block : 1));
    const index_t parts = blocks >= wanted || pool.size() == 1 ? 1 : smaller(ceil_div(wanted, blocks), most_parts);
    pool.parallel_for(blocks * parts, [&](index_t task) {
      const index_t r0 = task / parts * rows_per_task, r1 = smaller(r0 + rows_per_task, rows);
      const index_t s0 = share_begin(w.strips, parts, task % parts),
                    s1 = share_begin(w.strips, parts, task % parts + 1);
      for (index_t s = s0; s < s1; ++s) compute_strip(r0, r1, s, numbers.data(), width, scales.data());
      finish.after(r0, r1, first_column + s0 * int8_columns, first_column + smaller(s1 * int8_columns, w.columns));
    });
  }

 private:
  /// Rounds a row, and returns its scale.
  T round_row(const T* from, std::int8_t* to) const {
    using V = math::simd<T, math::native_lanes>;
    constexpr index_t lanes = math::native_lanes;
    V most(T(0));
    T largest = 0;
    bool is_finite = true;
    index_t i = 0;
    for (; i + lanes <= w.k; i += lanes) most = math::max(most, math::abs(V::load(from + i)));
    alignas(64) T each[std::size_t{lanes}];
    most.store(each);
    for (index_t l = 0; l < lanes; ++l) largest = each[l] > largest ? each[l] : largest;
    for (; i < w.k; ++i) largest = std::abs(from[i]) > largest ? std::abs(from[i]) : largest;
    is_finite = largest <= std::numeric_limits<T>::max();
    const T wanted = int8_scale(largest), scale = wanted >= std::numeric_limits<T>::min() ? wanted : T(0);
    const T inverse = scale > 0 && is_finite ? T(1) / scale : T(0);
    const int shift = kernel.shifted ? 128 : 0;
    for (i = 0; i < w.k; ++i) {
      is_finite = is_finite && from[i] == from[i];
      to[i] = static_cast<std::int8_t>(static_cast<std::uint8_t>(nearest(from[i] * inverse) + shift));
    }
    for (; i < w.steps * int8_step; ++i) to[i] = static_cast<std::int8_t>(static_cast<std::uint8_t>(shift));
    return is_finite ? scale : std::numeric_limits<T>::quiet_NaN();
  }
  /// The whole number nearest to x, which is at most 127: what is added leaves it in the last bits.
  static int nearest(float x) {
    constexpr float shift = 12582912.f;  // 1.5 * 2^23
    const float moved = x + shift;
    std::int32_t bits = 0;
    std::memcpy(&bits, &moved, sizeof bits);
    return (bits & 0x1ff) - ((bits & 0x100) != 0 ? 0x200 : 0);
  }

  void compute_strip(index_t r0, index_t r1, index_t s, const std::int8_t* numbers, index_t width,
                     const T* scales) const {
    alignas(64) std::int32_t sums[std::size_t{int8_rows * int8_columns}];
    const index_t column = s * int8_columns, valid = smaller(w.columns - column, int8_columns);
    for (index_t r = r0; r < r1; r += int8_rows) {
      const index_t count = smaller(r1 - r, int8_rows);
      kernel.run(count, w.steps, numbers + r * width, width, w.strip(s), sums);
      for (index_t i = 0; i < count; ++i)
        write_row(sums + i * int8_columns, scales[r + i], s, y + (r + i) * y_stride + column, valid);
    }
  }
  void write_row(const std::int32_t* sums, T scale, index_t s, T* to, index_t valid) const {
    alignas(64) T values[std::size_t{int8_columns}];
    const std::int32_t shift = kernel.shifted ? 128 : 0;
    const std::int32_t* const of_columns = w.sums(s);
    const T* const of_scales = w.scales(s);
    SINTER_UNROLL
    for (index_t j = 0; j < int8_columns; ++j)
      values[j] = static_cast<T>(sums[j] - shift * of_columns[j]) * (scale * of_scales[j]);
    if (add) add_elements(to, values, valid);
    else copy_elements(to, values, valid);
    if (finish.bias != nullptr) add_elements(to, finish.bias + first_column + s * int8_columns, valid);
  }
};

}  // namespace sinter::cpu_impl::detail

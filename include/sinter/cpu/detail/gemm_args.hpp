// sinter/cpu/detail/gemm_args.hpp: the operands of a matrix product, and how its tasks are shared out.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/cpu/threads.hpp"

namespace sinter::cpu_impl {

/// What a kernel calls, if anything, on parts of its result while they are in cache: once for every element, on
/// complete tiles [r0, r1) x [c0, c1) of a matrix, by the thread which finished them. It must not call a kernel.
struct tile_epilogue {
  void (*run)(void* ctx, index_t r0, index_t r1, index_t c0, index_t c1) = nullptr;
  void* ctx = nullptr;

  explicit operator bool() const { return run != nullptr; }
  void operator()(index_t r0, index_t r1, index_t c0, index_t c1) const {
    if (run != nullptr) run(ctx, r0, r1, c0, c1);
  }
};

/// C(m,n) = A(m,k) B(k,n), or C += A B where `accumulate` is set. A and B have any strides, negative ones included; C
/// is row-major with row stride `ldc` and overlaps neither.
template <class T>
struct gemm_args {
  index_t m, n, k;
  const T* a;
  index_t a_row, a_col;
  const T* b;
  index_t b_row, b_col;
  T* c;
  index_t ldc;
  bool accumulate;
  tile_epilogue after = {};
};

namespace detail {

constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

constexpr index_t smaller(index_t a, index_t b) { return a < b ? a : b; }

/// `count` things in `parts` shares as equal as can be: the first of share `part`.
constexpr index_t share_begin(index_t count, index_t parts, index_t part) {
  return count / parts * part + smaller(part, count % parts);
}

/// Runs the tasks of a product on the pool, or here if it is too small to share.
template <class T, class F>
void run_tasks(const gemm_args<T>& args, thread_pool& pool, index_t tasks, F&& f) {
  constexpr double least_products = 1e6;
  if (static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k) < least_products)
    for (index_t task = 0; task < tasks; ++task) f(task);
  else pool.parallel_for(tasks, f);
}

}  // namespace detail
}  // namespace sinter::cpu_impl

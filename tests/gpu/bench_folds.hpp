// tests/gpu/bench_folds.hpp: times statements on a GPU; prints name, milliseconds, bytes. And the folds that CUB has as
// well.
#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include <sinter/sinter.hpp>

namespace bench {

using namespace sinter;
using g0 = sinter::cuda<0>;

/// Median milliseconds of `repeats` runs of f, each measured by events around it, after two warm-up runs.
template <class F>
double median_ms(int repeats, const F& f) {
  const cudaStream_t stream = cuda_impl::context_of<g0>().stream();
  cudaEvent_t begin, end;
  cuda_impl::check(cudaEventCreate(&begin), "bench");
  cuda_impl::check(cudaEventCreate(&end), "bench");
  std::vector<float> times;
  for (int i = 0; i < repeats + 2; ++i) {
    cuda_impl::check(cudaEventRecord(begin, stream), "bench");
    f();
    cuda_impl::check(cudaEventRecord(end, stream), "bench");
    cuda_impl::check(cudaEventSynchronize(end), "bench");
    float ms = 0;
    cuda_impl::check(cudaEventElapsedTime(&ms, begin, end), "bench");
    if (i > 1) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

inline void report(const char* name, double ms, double bytes) {
  std::printf("%s\t%.4f\t%.0f\n", name, ms, bytes);
  std::fflush(stdout);
}

/// Of a and b, all 64 M of them and as 16384 rows of 4096.
inline void time_folds(const tensor<float, 1, g0>& a, const tensor<float, 1, g0>& b) {
  const double bytes = 4.0 * static_cast<double>(a.numel());
  tensor total = sum(a * b);
  report("sinter sum(a*b)", median_ms(15, [&] { total = sum(a * b); }), 2 * bytes);
  report("sinter sum(a)", median_ms(15, [&] { total = sum(a); }), bytes);
  report("sinter argmax(a)", median_ms(15, [&] { const tensor best = argmax(a); }), bytes);
  report("sinter histc 256 of 64 M", median_ms(15, [&] { const auto counts = histc(a, 256, -4, 4); }), bytes);
  generator gen(2);
  const tensor classes = cast<std::int32_t>(rand<float, g0>(gen, a.shape()) * 256.f);
  report("sinter bincount 256 of 64 M", median_ms(15, [&] { const auto counts = bincount(classes); }),
         2 * bytes);  // once for the largest
  report("sinter cumsum of int 64 M", median_ms(15, [&] { const tensor sums = cumsum(classes, 0); }), 3 * bytes);
  const auto x = a.reshape({16384, 4096});
  tensor sums = sum(x, 1);
  report("sinter sum(x,1) 16384x4096", median_ms(15, [&] { sums = sum(x, 1); }), bytes);
  report("sinter argmax 16384x4096", median_ms(15, [&] { const tensor best = argmax(x, 1); }), bytes);
  report("sinter cummax 16384x4096", median_ms(15, [&] { const auto best = cummax(x, 1); }), 4 * bytes);
}

}  // namespace bench

// tests/cuda/runtime/cub_test.cu: what sorts by CUB ask of CUDA, on the fake runtime; nothing where CUB is not installed.
#if __has_include(<cub/device/device_radix_sort.cuh>)
#include <sinter/cuda/cub.hpp>

#include <algorithm>

#include "checked.hpp"

using g0 = sinter::cuda<0>;
using g1 = sinter::cuda<1>;
using Catch::Contains;

namespace {

/// Sizes that CUB sorts by one kernel and by several.
constexpr sinter::index_t few = 100, many = 100000;

template <sinter::device D>
auto zeros(sinter::index_t n) {
  return sinter::zeros<float, D>({n});
}

/// Kernels of CUB's sorts that were started on a GPU so far.
auto kernels_of_cub(int gpu) {
  const auto& all = fake_cuda::launches();
  return std::count_if(all.begin(), all.end(), [gpu](const auto& l) { return l.gpu == gpu && l.kernel.find("DeviceRadixSort") != std::string::npos; });
}

}  // namespace

TEST_CASE_METHOD(on_fake_gpus, "a sort is CUB's, on the device's stream and GPU, and counts as one launch") {
  use(3);
  const auto x = zeros<g1>(many), y = zeros<g1>(few);
  const auto kernels = kernels_of_cub(1);
  const auto counted = sinter::launches<g1>();
  sinter::sort(x, 0);
  sinter::argsort(y, 0);
  CHECK(sinter::launches<g1>() == counted + 6);  // the keys before, the values after
  CHECK(kernels_of_cub(1) > kernels + 4);
  sinter::synchronize<g1>();
}

TEST_CASE_METHOD(on_fake_gpus, "a captured sort runs with each replay") {
  const auto x = zeros<g0>(many);
  sinter::tensor<float, 1, g0> y;
  const auto step = sinter::capture<g0>([&] { y = sinter::sort(x, 0).values; });
  CHECK(step.kernels() == 3);
  sinter::synchronize<g0>();
  const auto before = kernels_of_cub(0);
  step.replay();
  sinter::synchronize<g0>();
  const auto each = kernels_of_cub(0) - before;
  CHECK(each > 1);
  step.replay();
  sinter::synchronize<g0>();
  CHECK(kernels_of_cub(0) == before + 2 * each);
}

TEST_CASE_METHOD(on_fake_gpus, "a sort in which any call fails says so, and can be repeated") {
  use(2);
  for (const sinter::index_t n : {few, many}) {
    const auto x = zeros<g0>(n);
    const auto in_use = sinter::memory<g0>().bytes_in_use;
    const auto of_cub = std::to_string(n) + " pairs by CUB";
    bool named = false;
    for (fake_cuda::fault fault{.function = {}};; ++fault.after) {
      fake_cuda::plan(fault);
      const std::string said = error_of([&] { sinter::sort(x, 0); });
      const std::string failed = fake_cuda::end_plan();
      INFO("call " << fault.after << ", " << failed << ": " << said);
      use(2);
      if (failed.empty()) {
        CHECK(said.empty());
        break;
      }
      if (failed != "cudaSetDevice" && failed != "cudaMalloc") CHECK_THAT(said, Contains("cuda:0") || Contains("GPU "));
      named = named || said.find(of_cub) != std::string::npos;
      CHECK(cudaGetLastError() == cudaSuccess);
      CHECK(sinter::memory<g0>().bytes_in_use == in_use);
      CHECK_NOTHROW(sinter::sort(x, 0));
    }
    CHECK(named);
    sinter::synchronize<g0>();
  }
}

TEST_CASE_METHOD(on_fake_gpus, "an error that the program has left behind is not the sort's") {
  const auto x = zeros<g0>(many);
  fake_cuda::plan({.function = "cudaMemset"});
  CHECK(cudaMemset(nullptr, 0, 1) != cudaSuccess);
  fake_cuda::end_plan();
  CHECK_NOTHROW(sinter::sort(x, 0));
  sinter::synchronize<g0>();
}

TEST_CASE_METHOD(on_fake_gpus, "scratch memory is the device's, and its lack is said as elsewhere") {
  const auto x = zeros<g0>(many);
  sinter::synchronize<g0>();
  sinter::empty_cache<g0>();
  sinter::reset_peak_memory<g0>();
  sinter::sort(x, 0);
  const auto peak = sinter::memory<g0>().peak_bytes;
  sinter::synchronize<g0>();
  sinter::empty_cache<g0>();
  sinter::set_memory_limit<g0>(peak - 1);
  CHECK_THROWS_AS(sinter::sort(x, 0), sinter::out_of_memory);
  sinter::set_memory_limit<g0>(0);
  CHECK_NOTHROW(sinter::sort(x, 0));
  sinter::synchronize<g0>();
}
#endif

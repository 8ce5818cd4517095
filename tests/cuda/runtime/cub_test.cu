// tests/cuda/runtime/cub_test.cu: what sorts and folds by CUB ask of CUDA, on the fake runtime; nothing where CUB is
// not installed.
#if __has_include(<cub/device/device_radix_sort.cuh>)
#define SINTER_WITH_CUB_FOLDS 1
#include <algorithm>
#include <functional>

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

/// Kernels of CUB's, with that in their names, that were started on a GPU so far.
auto kernels_of_cub(int gpu, const std::string& what = "DeviceRadixSort") {
  const auto& all = fake_cuda::launches();
  return std::count_if(all.begin(), all.end(),
                       [&](const auto& l) { return l.gpu == gpu && l.kernel.find(what) != std::string::npos; });
}

/// Has each call that `work` makes of CUDA fail in turn, while the program uses GPU 2; the error says `of_cub` once at
/// least.
void fail_in_turn(const std::function<void()>& work, const std::string& of_cub) {
  const auto in_use = sinter::memory<g0>().bytes_in_use;
  bool named = false;
  for (fake_cuda::fault fault{.function = {}};; ++fault.after) {
    fake_cuda::plan(fault);
    const std::string said = error_of(work);
    const std::string failed = fake_cuda::end_plan();
    INFO("call " << fault.after << ", " << failed << ": " << said);
    cudaSetDevice(2);
    if (failed.empty()) {
      CHECK(said.empty());
      break;
    }
    if (failed != "cudaSetDevice" && failed != "cudaMalloc") CHECK_THAT(said, Contains("cuda:0") || Contains("GPU "));
    named = named || said.find(of_cub) != std::string::npos;
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(sinter::memory<g0>().bytes_in_use == in_use);
    CHECK_NOTHROW(work());
  }
  CHECK(named);
  sinter::synchronize<g0>();
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
    fail_in_turn([&x] { sinter::sort(x, 0); }, "'a sort' over shape (" + std::to_string(n) + ",) by CUB");
  }
}

TEST_CASE_METHOD(on_fake_gpus,
                 "folds are CUB's where it has them, on the device's stream and GPU, and count as one launch") {
  use(3);
  const auto x = zeros<g1>(many);
  const auto rows = x.reshape({100, 1000});
  const auto starts = [](const char* kernel, const auto& f) {
    const auto before = kernels_of_cub(1, kernel);
    const auto counted = sinter::launches<g1>();
    f();
    CHECK(sinter::launches<g1>() == counted + 1);
    sinter::synchronize<g1>();
    return kernels_of_cub(1, kernel) > before;
  };
  CHECK(starts("DeviceReduce", [&] { const sinter::tensor y = sum(x * 2) + 1; }));
  CHECK(starts("DeviceSegmentedReduce", [&] { const sinter::tensor y = argmax(abs(rows), 1); }));
  CHECK(starts("DeviceScanKernel", [&] { const sinter::tensor y = cumsum(sinter::cast<std::int32_t>(x), 0); }));
  CHECK(starts("DeviceScanByKey", [&] { const auto y = cummax(rows, 1); }));
  // Nothing of CUB's for columns, and few or short rows; nor where its sums would depend on chance.
  CHECK_FALSE(starts("3cub", [&] { const sinter::tensor y = sum(rows, 0); }));
  CHECK_FALSE(starts("3cub", [&] { const sinter::tensor y = sum(x.slice(0, 0, 6000).reshape({6, 1000}), 1); }));
  CHECK_FALSE(starts("3cub", [&] { const sinter::tensor y = sum(x.reshape({1000, 100}), 1); }));
  CHECK_FALSE(starts("3cub", [&] { const sinter::tensor y = cumsum(rows, 1); }));
}

TEST_CASE_METHOD(on_fake_gpus, "counts are CUB's") {
  const auto before = kernels_of_cub(0, "DeviceHistogram");
  const auto counts = histc(zeros<g0>(many), 10, -1, 1);
  sinter::synchronize<g0>();
  CHECK(kernels_of_cub(0, "DeviceHistogram") > before);
}

TEST_CASE_METHOD(on_fake_gpus, "a fold in which any call fails says so, and can be repeated") {
  use(2);
  const auto x = zeros<g0>(many);
  fail_in_turn([&x] { const sinter::tensor y = sum(x * 2); },
               "'a reduction' over shape (" + std::to_string(many) + ",) by CUB");
  fail_in_turn([&x] { const auto y = cummax(x.reshape({100, 1000}), 1); }, "'a scan' over shape (100, 1000) by CUB");
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

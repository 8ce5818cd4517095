// tests/gpu/rival_cub.cu: the sums, scans, sorts and counts of bench.cu by CUB's own calls; prints the same rows as
// bench.cu.
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "rival_cub: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

/// Memory of the GPU, which the process keeps.
template <class T>
T* memory(std::size_t n) {
  void* p = nullptr;
  must(cudaMalloc(&p, n * sizeof(T)), "allocating");
  return static_cast<T*>(p);
}

/// Mixes the bits of a number: the end of MurmurHash3.
__device__ std::uint32_t mixed(std::uint32_t h) {
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

/// Normal numbers, by Box and Muller, whole ones from 0 to 255, and positions.
__global__ void fill(float* a, float* b, int* classes, std::uint32_t* positions, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const std::uint32_t first = mixed(2 * static_cast<std::uint32_t>(i)),
                      second = mixed(2 * static_cast<std::uint32_t>(i) + 1);
  const float radius = sqrtf(-2 * logf((static_cast<float>(first >> 8) + 1) / 16777217.f));
  sincospif(static_cast<float>(second >> 8) / 8388608.f, a + i, b + i);
  a[i] *= radius;
  b[i] *= radius;
  classes[i] = static_cast<int>(first % 256);
  positions[i] = static_cast<std::uint32_t>(i);
}

struct product {
  const float *a, *b;
  __host__ __device__ float operator()(int i) const { return a[i] * b[i]; }
};

/// Calls f(scratch, bytes) once for the size of its scratch memory, and then, with that memory, as bench.cu calls what
/// it times: the median of `repeats` runs, each measured by events around it, after two warm-up runs.
template <class F>
void report(const char* name, int repeats, const F& f) {
  std::size_t bytes = 0;
  must(f(nullptr, bytes), name);
  void* const scratch = memory<char>(bytes > 0 ? bytes : 1);
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "an event");
  must(cudaEventCreate(&end), "an event");
  std::vector<float> times;
  for (int i = 0; i < repeats + 2; ++i) {
    must(cudaEventRecord(begin), name);
    must(f(scratch, bytes), name);
    must(cudaEventRecord(end), name);
    must(cudaEventSynchronize(end), name);
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end), name);
    if (i > 1) times.push_back(ms);
  }
  must(cudaFree(scratch), name);
  std::sort(times.begin(), times.end());
  std::printf("cub %s\t%.4f\t0\n", name, static_cast<double>(times[times.size() / 2]));
  std::fflush(stdout);
}

}  // namespace

int main() {
  constexpr int n = 64 << 20, quarter = n / 4;
  float *const a = memory<float>(n), *const b = memory<float>(n), *const to = memory<float>(n);
  int *const classes = memory<int>(n), *const counts = memory<int>(256), *const most = memory<int>(1);
  [[maybe_unused]] std::int64_t* const where = memory<std::int64_t>(1);
  std::uint32_t *const positions = memory<std::uint32_t>(n), *const sorted = memory<std::uint32_t>(quarter);
  fill<<<n / 256, 256>>>(a, b, classes, positions, n);
  must(cudaDeviceSynchronize(), "filling");

  const auto products = thrust::make_transform_iterator(thrust::make_counting_iterator(0), product{a, b});
  report("sum(a*b)", 15,
         [&](void* s, std::size_t& bytes) { return cub::DeviceReduce::Sum(s, bytes, products, to, n); });
  report("sum(a)", 15, [&](void* s, std::size_t& bytes) { return cub::DeviceReduce::Sum(s, bytes, a, to, n); });
#if CUB_VERSION >= 300000  // before, it took other arguments
  report("argmax(a)", 15,
         [&](void* s, std::size_t& bytes) { return cub::DeviceReduce::ArgMax(s, bytes, a, to, where, n); });
#endif
  report("cumsum 64 M", 15,
         [&](void* s, std::size_t& bytes) { return cub::DeviceScan::InclusiveSum(s, bytes, a, to, n); });
  report("cumsum 16 M", 15,
         [&](void* s, std::size_t& bytes) { return cub::DeviceScan::InclusiveSum(s, bytes, a, to, quarter); });
  // bench.cu makes the positions as well, and gathers values and indices of 64 bits.
  report("sort 16 M", 7, [&](void* s, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(s, bytes, a, to, positions, sorted, quarter);
  });
  report("histc 256 of 64 M", 15, [&](void* s, std::size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(s, bytes, a, counts, 257, -4.f, 4.f, n);
  });
  // How many classes there are is found first, and waited for.
  std::size_t for_most = 0;
  must(cub::DeviceReduce::Max(nullptr, for_most, classes, most, n), "max");
  void* const scratch = memory<char>(for_most);
  report("bincount 256 of 64 M", 15, [&](void* s, std::size_t& bytes) {
    int last = 255;
    if (s != nullptr) {
      must(cub::DeviceReduce::Max(scratch, for_most, classes, most, n), "max");
      must(cudaMemcpy(&last, most, sizeof last, cudaMemcpyDeviceToHost), "max");
    }
    return cub::DeviceHistogram::HistogramEven(s, bytes, classes, counts, last + 2, 0, last + 1, n);
  });
}

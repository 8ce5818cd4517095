// tests/package/native/main.cu: a kernel, cuDNN and NCCL beside Sinter's statements; without a GPU it says so.
#include <sinter/sinter.hpp>

#include <cstdio>

using namespace sinter;
using g0 = cuda<0>;

namespace {

__global__ void add_one(float* x, index_t n) {
  if (threadIdx.x < n) x[threadIdx.x] += 1;
}

}  // namespace

int main() {
  int nccl = 0;
  if (ncclGetVersion(&nccl) != ncclSuccess) return 1;
  std::printf("cuDNN %zu, NCCL %d\n", cudnn_version(), nccl);
  try {
    const auto x = zeros<float, g0>({100});
    add_one<<<1, 128, 0, native_stream<g0>()>>>(device_pointer(x), x.numel());
    all_reduce(x);
    if (native_cudnn<g0>() == nullptr || eval(sum(x * 2)).item() != 200) return 1;
  } catch (const device_error& e) {
    std::printf("%s\n", e.what());
    return available<g0>();
  }
  return 0;
}

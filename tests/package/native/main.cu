// tests/package/native/main.cu: a kernel, cuDNN and NCCL beside Sinter's statements; without a GPU it says so.
#include <sinter/sinter.hpp>

#include <cstdio>

using namespace sinter;
using gpu = cuda<0>;

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
    const auto x = zeros<float, gpu>({100});
    add_one<<<1, 128, 0, native_stream<gpu>()>>>(device_pointer(x), x.numel());
    all_reduce(x);
    if (native_cudnn<gpu>() == nullptr || eval(sum(x * 2)).item() != 200) return 1;
  } catch (const device_error& e) {
    std::printf("%s\n", e.what());
    return available<gpu>();
  }
  return 0;
}

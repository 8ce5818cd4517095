// tests/devices/gpu_name_test.cpp: gpu<I> beside CUDA's own namespace ::cuda, as Thrust and CUB declare it.
namespace cuda {
struct of_another_library {};
}  // namespace cuda

#include <type_traits>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

static_assert(std::is_same_v<gpu<1>, sinter::cuda<1>>);

TEST_CASE("gpu<I> names a GPU where cuda<I> is ambiguous", "[devices]") {
  const tensor<float, 1, gpu<0>>* elsewhere = nullptr;
  CHECK(elsewhere == nullptr);
  CHECK(device_name<gpu<1>>() == "cuda:1");
}

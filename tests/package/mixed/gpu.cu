// tests/package/mixed/gpu.cu: the half that evaluates on a GPU.
#include "gpu.hpp"

using namespace sinter;

on_gpu send(const tensor<float, 2>& x) { return {x.to<cuda<0>>(), ones<float, cuda<0>>({x.extent(1)})}; }

tensor<float, 2> twice(const on_gpu& there) {
  const variable y = there.x * there.w * 2;
  y.backward(ones_like(there.x));
  return y.value().to<cpu>();
}

tensor<float, 2> in_order(const on_gpu& there) { return sort(there.x, 1).values.to<cpu>(); }

bool others_sort() { return cuda_impl::other_sorter != nullptr; }

// tests/package/mixed/main.cpp: the half that never saw CUDA; it holds tensors of a GPU and hands them on.
#include <cstdio>

#include "gpu.hpp"

using namespace sinter;

// Any argument: others are to sort.
int main(int count, char**) {
  if (others_sort() != (count > 1)) return 1;
  if (!available<cuda<0>>()) {
    try {
      send(ones<float>({2, 2}));
    } catch (const device_error& e) {
      std::printf("%s\n", e.what());
      return 0;
    }
    return 1;
  }
  const on_gpu there = send(full<float>({2, 3}, 2.f));
  const tensor y = twice(there);
  return there.x.shape() == extents<2>{{2, 3}} && y(1, 2) == 4 && in_order(there)(1, 2) == 2 ? 0 : 1;
}

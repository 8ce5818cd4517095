// tests/same_bits.hpp: whether two tensors hold the same bits, in row-major order.
#pragma once

#include <sinter/sinter.hpp>

#include <cstring>

/// Of one element type, on any devices, views as well.
template <class T, auto S, sinter::device D, sinter::device E>
bool same_bits(const sinter::tensor<T, S, D>& a, const sinter::tensor<T, S, E>& b) {
  const sinter::tensor x = a.template to<sinter::cpu>().contiguous(), y = b.template to<sinter::cpu>().contiguous();
  return x.shape() == y.shape() &&
         std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.numel()) * sizeof(T)) == 0;
}

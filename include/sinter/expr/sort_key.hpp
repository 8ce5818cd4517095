// sinter/expr/sort_key.hpp: values as unsigned numbers of the same order, by which every device sorts.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::detail {

/// NaNs are equal and larger than all else, -0 is equal to 0. The other way round for descending order.
template <class T>
SINTER_WORD bits_of<T> sort_key(T x, bool descending) {
  using key = bits_of<T>;
  constexpr key sign = static_cast<key>(key{1} << (8 * sizeof(T) - 1));
  key k = 0;
  if constexpr (floating_element<T>) {
    k = math::bit_cast<key>(x == T(0) ? T(0) : x);
    k = x != x ? static_cast<key>(~key{0}) : static_cast<key>(k ^ ((k & sign) != 0 ? static_cast<key>(~key{0}) : sign));
  } else {
    k = static_cast<key>(x);
    if constexpr (std::is_signed_v<T>) k = static_cast<key>(k ^ sign);
  }
  return descending ? static_cast<key>(~k) : k;
}

}  // namespace sinter::detail

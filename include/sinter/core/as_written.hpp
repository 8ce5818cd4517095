// sinter/core/as_written.hpp: keeps constants from being copied wrong by g++ 12.
#pragma once

#include <type_traits>

namespace sinter::detail {

/// x, a pointer or a whole number, of which the compiler does not know the value. For processors with AVX-512, g++ 12.2
/// copies a constant of four words as its first word four times if the others are equal to it or, at the end, 0 (or -1
/// behind negative ones): {1, 1, 1, 0} arrives as {1, 1, 1, 1}.
template <class T>
constexpr T as_written(T x) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (!std::is_constant_evaluated()) asm("" : "+r"(x));
#endif
  return x;
}

}  // namespace sinter::detail

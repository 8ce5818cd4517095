// sinter/core/types.hpp: the element types of tensors and what follows from them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sinter/config.hpp"
#include "sinter/core/half.hpp"

namespace sinter {

/// Signed type of every extent, stride, index and count.
using index_t = std::int64_t;

/// The largest rank a tensor may have.
inline constexpr int max_rank = 8;

namespace detail {

template <class T, class... Ts>
inline constexpr bool is_one_of = (std::is_same_v<T, Ts> || ...);

/// How often T stands in the list.
template <class T, class... Ts>
inline constexpr int times_listed = (int{std::is_same_v<T, Ts>} + ... + 0);

template <class T>
inline constexpr bool always_false = false;

template <class T>
using bare = std::remove_cvref_t<T>;

}  // namespace detail

/// Floating-point elements of two bytes: half and bfloat16.
template <class T>
concept narrow_element = detail::is_one_of<T, half, bfloat16>;

/// What a tensor can hold: float, double, half, bfloat16, the signed integers of 8 to 64 bits, `std::uint8_t`, bool.
template <class T>
concept element = detail::is_one_of<T, half, bfloat16, float, double, std::int8_t, std::int16_t, std::int32_t,
                                    std::int64_t, std::uint8_t, bool>;

/// Element types that carry gradients: float, double, half and bfloat16.
template <class T>
concept floating_element = detail::is_one_of<T, half, bfloat16, float, double>;

/// The type that elements T are computed in: float for half and bfloat16, T itself otherwise. A statement converts as
/// it reads and rounds as it writes.
template <class T>
using compute_type = std::conditional_t<narrow_element<T>, float, T>;

namespace detail {

/// The unsigned integer of that many bytes; of T's size.
template <std::size_t Bytes>
using bits_of_size = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t, std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;
template <class T>
using bits_of = bits_of_size<sizeof(T)>;

}  // namespace detail

/// Integer element types; bool is not one.
template <class T>
concept integer_element = element<T> && std::is_integral_v<T> && !std::is_same_v<T, bool>;

namespace detail {

template <class T>
constexpr bool is_negative([[maybe_unused]] T a) {
  if constexpr (std::is_signed_v<T>) return a < T(0);
  else return false;  // nvcc warns of an unsigned number compared with 0
}

/// Is the integer a a value of the integer type T?
template <class T, class A>
constexpr bool is_value_of(A a) {
  const T value = static_cast<T>(a);
  return static_cast<A>(value) == a && is_negative(value) == is_negative(a);
}

}  // namespace detail

/// The name a person would use for element type T, such as "float" or "int64".
template <element T>
constexpr const char* element_name() {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_same_v<T, half>) return "half";
  if constexpr (std::is_same_v<T, bfloat16>) return "bfloat16";
  if constexpr (std::is_same_v<T, std::int8_t>) return "int8";
  if constexpr (std::is_same_v<T, std::int16_t>) return "int16";
  if constexpr (std::is_same_v<T, std::int32_t>) return "int32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "int64";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "uint8";
  if constexpr (std::is_same_v<T, bool>) return "bool";
}

}  // namespace sinter

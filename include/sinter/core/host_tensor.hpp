// sinter/core/host_tensor.hpp: a tensor whose element type and rank are known at run time, as files hold them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "sinter/core/types.hpp"

namespace sinter {

/// An element type at run time.
enum class element_kind : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  boolean
};

/// Calls f(T{}) with the element type of that kind.
template <class F>
decltype(auto) with_element(element_kind kind, F&& f) {
  switch (kind) {
    case element_kind::float64:
      return f(double{});
    case element_kind::float16:
      return f(half{});
    case element_kind::bfloat16:
      return f(bfloat16{});
    case element_kind::int8:
      return f(std::int8_t{});
    case element_kind::int16:
      return f(std::int16_t{});
    case element_kind::int32:
      return f(std::int32_t{});
    case element_kind::int64:
      return f(std::int64_t{});
    case element_kind::uint8:
      return f(std::uint8_t{});
    case element_kind::boolean:
      return f(bool{});
    case element_kind::float32:
      break;
  }
  return f(float{});
}

/// The kind of element type T.
template <element T>
constexpr element_kind kind_of_element() {
  if constexpr (std::is_same_v<T, double>) return element_kind::float64;
  if constexpr (std::is_same_v<T, half>) return element_kind::float16;
  if constexpr (std::is_same_v<T, bfloat16>) return element_kind::bfloat16;
  if constexpr (std::is_same_v<T, std::int8_t>) return element_kind::int8;
  if constexpr (std::is_same_v<T, std::int16_t>) return element_kind::int16;
  if constexpr (std::is_same_v<T, std::int32_t>) return element_kind::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return element_kind::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return element_kind::uint8;
  if constexpr (std::is_same_v<T, bool>) return element_kind::boolean;
  return element_kind::float32;
}

inline const char* element_name(element_kind kind) {
  return with_element(kind, [](auto x) { return element_name<decltype(x)>(); });
}
inline std::size_t element_size(element_kind kind) {
  return with_element(kind, [](auto x) { return sizeof(x); });
}

/// Elements in the host's memory, row-major, at any address. It refers to memory that `owner` keeps alive, such as a
/// mapped file; without an owner the memory is the caller's.
struct host_tensor {
  element_kind element = element_kind::float32;
  std::vector<index_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

}  // namespace sinter

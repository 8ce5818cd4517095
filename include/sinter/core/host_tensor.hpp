// sinter/core/host_tensor.hpp: tensors whose element type and rank are known at run time, as files and states hold
// them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/core/number.hpp"

namespace sinter {

/// An element type at run time. The first ten are those of tensors. Files may also hold the unsigned integers of 16 to
/// 64 bits, and types that have no name here, such as floating-point numbers of 8 bits: `other`.
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
  boolean,
  uint16,
  uint32,
  uint64,
  other
};

/// Calls f(X{}) with the C++ type X of that kind. Errors: value_error for `other`, which has none.
template <class F>
decltype(auto) with_element(element_kind kind, F&& f) {
  switch (kind) {
    case element_kind::float32:
      return f(float{});
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
    case element_kind::uint16:
      return f(std::uint16_t{});
    case element_kind::uint32:
      return f(std::uint32_t{});
    case element_kind::uint64:
      return f(std::uint64_t{});
    case element_kind::other:
      break;
  }
  detail::refuse<value_error>({"with_element: elements of kind 'other' have no C++ type"});
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

/// As element_name<T>() has it, for those that are types of tensors.
constexpr const char* element_name(element_kind kind) {
  constexpr const char* names[] = {"float", "double", "half", "bfloat16", "int8",   "int16",  "int32",
                                   "int64", "uint8",  "bool", "uint16",   "uint32", "uint64", "other"};
  return names[static_cast<int>(kind)];
}
/// Bytes of an element; 0 for `other`.
constexpr std::size_t element_size(element_kind kind) {
  constexpr std::size_t sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1, 2, 4, 8, 0};
  return sizes[static_cast<int>(kind)];
}

/// Elements in the host's memory, row-major, at any address. It refers to memory that `owner` keeps alive, such as a
/// mapped file; without an owner the memory is the caller's. One made from a dense host tensor shares its memory, one
/// made from any other tensor holds a copy. Errors: value_error for an undefined tensor.
///
///     host_tensor any = ones<float>({2, 3});   // any.element is element_kind::float32, any.shape {2, 3}
struct host_tensor {
  host_tensor() = default;
  host_tensor(element_kind kind, std::vector<index_t> extents, std::span<const std::byte> elements,
              std::shared_ptr<const void> keep = nullptr);
  template <sinter::element T, auto Shape, device D>
  host_tensor(const tensor<T, Shape, D>& x) : element(kind_of_element<T>()) {  // NOLINT: implicit on purpose
    if (!x.defined()) detail::refuse<value_error>({"host_tensor: the tensor is undefined; assign it first"});
    shape.assign(x.shape().begin(), x.shape().end());
    const auto dense = std::make_shared<const tensor<T, Shape, cpu>>(x.template to<cpu>().contiguous());
    bytes = std::as_bytes(dense->span());
    owner = dense;
  }

  element_kind element = element_kind::float32;
  std::vector<index_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// An entry of a file or of the state of a model: {"weight", w} for a tensor w. Errors: value_error for an undefined
/// tensor.
struct named_tensor {
  named_tensor() = default;
  named_tensor(std::string the_name, host_tensor the_value);
  template <sinter::element T, auto Shape, device D>
  named_tensor(std::string the_name, const tensor<T, Shape, D>& x) : name(std::move(the_name)) {
    if (!x.defined()) detail::refuse<value_error>({"named_tensor: the tensor '", name, "' is undefined"});
    value = host_tensor(x);
  }

  std::string name;  ///< as in PyTorch: "0.weight", "1.running_mean"
  host_tensor value;
};

#if SINTER_DEFINES

SINTER_SHARED host_tensor::host_tensor(element_kind kind, std::vector<index_t> extents,
                                       std::span<const std::byte> elements, std::shared_ptr<const void> keep)
    : element(kind), shape(std::move(extents)), bytes(elements), owner(std::move(keep)) {}

SINTER_SHARED named_tensor::named_tensor(std::string the_name, host_tensor the_value)
    : name(std::move(the_name)), value(std::move(the_value)) {}

#endif  // SINTER_DEFINES

namespace detail {

/// n elements of type From at any address, to elements of type To; returns how many were converted before one that
/// does not fit. Any byte but 0 is true.
template <class From, class To>
std::size_t convert_elements(const void* from, std::size_t n, To* to) {
  for (std::size_t i = 0; i < n; ++i) {
    bits_of<From> bits;
    std::memcpy(&bits, static_cast<const char*>(from) + i * sizeof(From), sizeof(From));
    From value;
    if constexpr (std::is_same_v<From, bool>) value = bits != 0;
    else value = std::bit_cast<From>(bits);
    if (!fits_element<To>(value)) return i;
    if constexpr (std::is_same_v<From, To>) to[i] = value;
    else to[i] = static_cast<To>(static_cast<std::conditional_t<narrow_element<From>, float, From>>(value));
  }
  return n;
}

/// A number at any address as text, for a message.
template <class From>
std::string element_text(const void* from) {
  From value[1] = {};
  convert_elements<From>(from, 1, value);
  if constexpr (narrow_element<From>) return joined({static_cast<float>(value[0])});
  else if constexpr (std::is_same_v<From, bool>) return value[0] ? "true" : "false";
  else return joined({value[0]});
}

/// What is wrong with element i of the elements `from`, which convert_elements did not convert to To.
template <class From, class To>
SINTER_COLD std::string unfit_text(const void* from, std::size_t i, std::size_t number) {
  return joined({"element ", number, " is ", element_text<From>(static_cast<const char*>(from) + i * sizeof(From)),
                 ", which does not fit ", element_name<To>()});
}

}  // namespace detail
}  // namespace sinter

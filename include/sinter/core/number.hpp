// sinter/core/number.hpp: numbers of any type as parameters: as elements, which they must fit, and as indices.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

struct index_that_is_not_an_integer;
struct use_an_integer_index;

namespace detail {

/// True if an element of type T can hold the number a: integers and bool within their range and without a fraction.
/// Floating-point elements round, but hold no finite number beyond their largest.
template <class T, class A>
constexpr bool fits_element(A a) {
  if constexpr (narrow_element<A>) return fits_element<T>(static_cast<float>(a));
  else if constexpr (std::is_integral_v<T> && std::is_integral_v<A>) return is_value_of<T>(a);
  else if constexpr (std::is_integral_v<T>) {
    // 2^digits, one above the largest T, is exact in A; T's least is exact too.
    constexpr A above = static_cast<A>(std::uint64_t{1} << (std::numeric_limits<T>::digits - 1)) * 2;
    return a >= static_cast<A>(std::numeric_limits<T>::lowest()) && a < above && a == std::trunc(a);
  } else if constexpr (std::is_same_v<T, A>) return true;
  else if constexpr (std::is_floating_point_v<A>)
    return std::isfinite(static_cast<compute_type<T>>(static_cast<T>(a))) || !std::isfinite(a);
  else return std::isfinite(static_cast<compute_type<T>>(static_cast<T>(a)));
}

/// A number as an element of type T, given as any number. Errors: value_error where T cannot hold it.
template <class T>
class number {
 public:
  template <class A>
    requires(std::is_arithmetic_v<A> || narrow_element<A>)
  number(A a) {  // NOLINT: implicit on purpose
    if (!fits_element<T>(a)) {
      if constexpr (std::is_integral_v<A>) refuse_number(a);
      else refuse_number(static_cast<double>(a));
    }
    value_ = static_cast<T>(a);
  }
  operator T() const { return value_; }

 private:
  [[noreturn]] SINTER_COLD static void refuse_number(text_piece a) {
    refuse<value_error>({a, " does not fit elements of type ", element_name<T>()});
  }
  T value_;
};

/// A number of any type, exact, for elements that are known later.
class any_number {
 public:
  template <class A>
    requires std::is_arithmetic_v<A>
  constexpr any_number(A a)  // NOLINT: implicit on purpose
      : is_whole_(std::is_integral_v<A>),
        whole_(is_whole_ ? static_cast<std::int64_t>(a) : 0),
        real_(static_cast<double>(a)) {}
  /// Errors: value_error where it does not fit.
  template <class T>
  number<T> as() const {
    return is_whole_ ? number<T>(whole_) : number<T>(real_);
  }

 private:
  bool is_whole_;
  std::int64_t whole_;
  double real_;
};

/// An axis, an index or a count, given as any integer. A floating-point argument does not compile.
class whole {
 public:
  constexpr whole(index_t i) : value_(i) {}  // NOLINT: implicit on purpose
  template <class A, class Problem = index_that_is_not_an_integer, class Fix = use_an_integer_index>
    requires(std::is_floating_point_v<A> || narrow_element<A>)
  constexpr whole(A) = delete;
  constexpr operator index_t() const { return value_; }

 private:
  index_t value_;
};

}  // namespace detail
}  // namespace sinter

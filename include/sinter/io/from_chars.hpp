// sinter/io/from_chars.hpp: std::from_chars, also for floating-point numbers where the standard library has none for
// them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "sinter/config.hpp"

namespace sinter::detail {

/// The result of std::from_chars(first, last, x), by strtod, which rounds correctly. It is given no decimal point,
/// whose character depends on the locale: 12.5e3 is read as 125e2.
SINTER_SHARED_COLD std::from_chars_result from_chars_by_strtod(const char* first, const char* last, double& x);
SINTER_SHARED_COLD std::from_chars_result from_chars_by_strtod(const char* first, const char* last, float& x);

/// std::from_chars. libc++ before 20 reads integers only.
template <class T>
std::from_chars_result from_chars(const char* first, const char* last, T& x) {
#if !defined(__cpp_lib_to_chars)
  if constexpr (std::is_floating_point_v<T>) return from_chars_by_strtod(first, last, x);
  else
#endif
    return std::from_chars(first, last, x);
}

#if SINTER_DEFINES

/// The number at the start of a text, without its sign.
struct decimal_text {
  std::string digits;  ///< as strtod reads it; empty where there is no number
  std::size_t length = 0;
  bool is_zero = true;  ///< all its digits are
};

SINTER_SHARED_COLD decimal_text find_decimal(std::string_view text) {
  decimal_text found;
  const auto is_digit = [&text](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::size_t i = 0;
  long long behind_point = 0, power = 0;
  const auto take_digits = [&] {
    const std::size_t begin = i;
    for (; is_digit(i); ++i) found.is_zero = found.is_zero && text[i] == '0';
    found.digits.append(text.substr(begin, i - begin));
    return i - begin;
  };
  std::size_t count = take_digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    behind_point = static_cast<long long>(take_digits());
    count += static_cast<std::size_t>(behind_point);
  }
  if (count == 0) return {};
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    const bool is_signed = i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '+');
    if (std::size_t at = i + (is_signed ? 2 : 1); is_digit(at)) {
      constexpr long long most = 1'000'000'000'000;  // more than a text has digits
      for (; is_digit(at); ++at) power = power < most ? 10 * power + (text[at] - '0') : most;
      if (text[i + 1] == '-') power = -power;
      i = at;
    }
  }
  found.length = i;
  found.digits += 'e' + std::to_string(power - behind_point);
  return found;
}

template <class T>
std::from_chars_result from_chars_by(T (*read)(const char*, char**), const char* first, const char* last, T& x) {
  std::string_view text(first, static_cast<std::size_t>(last - first));
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const auto ends_at = [&](std::size_t n) { return last - text.size() + n; };
  const auto signed_as_read = [is_negative](T value) { return is_negative ? -value : value; };
  const auto starts_with = [&text](std::string_view word) {  // of small letters
    bool same = text.size() >= word.size();
    for (std::size_t i = 0; same && i < word.size(); ++i) same = (text[i] | 0x20) == word[i];
    return same;
  };
  for (const std::string_view word : {std::string_view("infinity"), std::string_view("inf"), std::string_view("nan")})
    if (starts_with(word)) {
      x = signed_as_read(word == "nan" ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity());
      return {ends_at(word.size()), std::errc()};
    }
  const decimal_text number = find_decimal(text);
  if (number.length == 0) return {first, std::errc::invalid_argument};
  const T value = read(number.digits.c_str(), nullptr);
  const char* const end = ends_at(number.length);
  if (std::isinf(value) || (value == 0 && !number.is_zero)) return {end, std::errc::result_out_of_range};
  x = signed_as_read(value);
  return {end, std::errc()};
}

SINTER_SHARED_COLD std::from_chars_result from_chars_by_strtod(const char* first, const char* last, double& x) {
  return from_chars_by(&std::strtod, first, last, x);
}
SINTER_SHARED_COLD std::from_chars_result from_chars_by_strtod(const char* first, const char* last, float& x) {
  return from_chars_by(&std::strtof, first, last, x);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

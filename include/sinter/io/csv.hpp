// sinter/io/csv.hpp: tables of numbers in text files.
#pragma once

#include <charconv>
#include <cmath>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/from_chars.hpp"

namespace sinter {

struct csv_options {
  char separator = ',';
  index_t skip_lines = 0;                       ///< lines before the first row, such as a heading
  index_t max_unpacked = default_max_unpacked;  ///< bytes of text that a .gz file may hold
};

namespace detail {

[[noreturn]] SINTER_COLD inline void refuse_csv(const std::string& path, index_t line, index_t column,
                                                std::initializer_list<text_piece> what) {
  refuse<io_error>({path, ":", line, column > 0 ? joined({": column ", column}) : "", ": ", joined(what)});
}

/// The text of a field as it may stand in a message.
SINTER_COLD inline std::string shown(std::string_view field) {
  std::string text;
  for (char c : field.substr(0, 24)) text += c >= ' ' && c <= '~' ? c : '?';
  return "'" + text + (field.size() > 24 ? "...'" : "'");
}

/// True if a decimal number that is too large or too small for its type is too small.
SINTER_COLD inline bool is_tiny(std::string_view number) {
  std::size_t e = number.find_first_of("eE"), point = number.find('.');
  if (e > number.size()) e = number.size();
  if (point > e) point = e;
  const std::size_t first = number.find_first_of("123456789");
  long long power = 0;  // of ten
  if (e < number.size()) {
    const std::string_view digits = number.substr(e + (number[e + 1] == '+' ? 2 : 1));
    if (std::from_chars(digits.data(), digits.data() + digits.size(), power).ec != std::errc()) return digits[0] == '-';
  }
  const auto distance = static_cast<long long>(point) - static_cast<long long>(first);
  const long long first_power = distance > 0 ? distance - 1 : distance;  // of the first digit, without the exponent
  return power < -first_power;
}

/// As from_chars, but what is too small becomes 0. Numbers of 16 bits are rounded from the nearest float.
template <class T>
std::from_chars_result read_number(std::string_view field, T& value) {
  constexpr bool narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
  std::conditional_t<narrow, float, T> number{};
  auto result = detail::from_chars(field.data(), field.data() + field.size(), number);
  if constexpr (!std::is_integral_v<T>)
    if (result.ec == std::errc::result_out_of_range &&
        is_tiny(field.substr(0, static_cast<std::size_t>(result.ptr - field.data())))) {
      number = field.starts_with('-') ? -0.f : 0.f;
      result.ec = std::errc();
    }
  value = T(number);
  if constexpr (narrow)
    if (std::isinf(static_cast<float>(value)) && !std::isinf(number)) result.ec = std::errc::result_out_of_range;
  return result;
}

/// The number that a field is. Errors: io_error, whose text ends with `advice` where it is no number.
template <class T>
T csv_number(const std::string& path, index_t line, index_t column, std::string_view field, const char* advice) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  T value{};
  const auto [last, problem] = read_number(field, value);
  if (problem == std::errc::result_out_of_range)
    refuse_csv(path, line, column, {shown(field), " does not fit ", element_name<T>()});
  if (field.empty()) refuse_csv(path, line, column, {"the field is empty"});
  if (problem != std::errc() || last != field.data() + field.size())
    refuse_csv(path, line, column, {shown(field), " is not a number of type ", element_name<T>(), advice});
  return value;
}

/// s without the blanks at its ends. The separator is not a blank, even if it is a tab or a space.
inline std::string_view trimmed(std::string_view s, char separator) {
  const auto blank = [&](char c) { return (c == ' ' || c == '\t' || c == '\r') && c != separator; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

/// True for a character that numbers or lines consist of.
inline bool in_numbers(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("+-.\r\n").find(c) != std::string_view::npos;
}

}  // namespace detail

/// A file of numbers, one row a line, as a tensor (rows, columns). Blank lines are skipped; a name ending in .gz is
/// unpacked. Numbers too small for T are 0, half and bfloat16 are rounded from the nearest float. Errors: value_error
/// for options without sense; io_error with file, line and column for a file that cannot be read or holds nothing, a
/// field that is not a number of type T, and rows of different length (as in a file that was cut short).
///
///     tensor table = read_csv<float>("digits.csv");   // (1797, 65)
template <element T = float>
  requires(!std::is_same_v<T, bool>)
SINTER_COLD tensor<T, 2> read_csv(const std::string& path, const csv_options& options = {}) {
  if (options.skip_lines < 0)
    detail::refuse<value_error>(
        {"read_csv: csv_options::skip_lines is ", options.skip_lines, "; it must not be negative"});
  if (detail::in_numbers(options.separator))
    detail::refuse<value_error>({"read_csv: csv_options::separator cannot be a character of numbers or line ends"});
  const std::string text = detail::read_file(path, options.max_unpacked);
  std::vector<T> values;
  index_t rows = 0, columns = 0, line = 0;
  for (std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
       at < text.size();) {  // a byte order mark says nothing here
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (++line <= options.skip_lines || detail::trimmed(row, options.separator).empty()) continue;
    index_t column = 0;
    for (bool more = true; more;) {
      const std::size_t comma = row.find(options.separator);
      more = comma != std::string_view::npos;
      const std::string_view field = detail::trimmed(row.substr(0, comma), options.separator);
      if (more) row.remove_prefix(comma + 1);
      ++column;
      values.push_back(detail::csv_number<T>(path, line, column, field,
                                             rows == 0 ? "; csv_options::skip_lines skips a heading" : ""));
    }
    if (rows == 0) columns = column;
    if (column != columns)
      detail::refuse_csv(path, line, 0,
                         {column, column == 1 ? " field" : " fields", " where the first row has ", columns,
                          column < columns && at >= text.size() ? "; the file seems to be cut short" : ""});
    ++rows;
  }
  if (rows == 0) detail::refuse<io_error>({path, ": holds no rows"});
  return from_data<T>(values, {rows, columns});
}

}  // namespace sinter

// sinter/io/csv.hpp: tables of numbers in text files.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/io/file.hpp"

namespace sinter {

struct csv_options {
  char separator = ',';
  index_t skip_lines = 0;  ///< lines before the first row, such as a heading
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

/// A number out of range may be too small rather than too large; that is 0, or the nearest to it.
template <class T>
bool read_underflow(std::string_view field, T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    const double x = std::strtod(std::string(field).c_str(), nullptr);
    if (std::fabs(x) < 1) value = static_cast<T>(x);
    return std::fabs(x) < 1;
  } else {
    return false;
  }
}

inline std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

}  // namespace detail

/// A file of numbers, one row a line, as a tensor (rows, columns). Blank lines are skipped; a name ending in .gz is
/// unpacked. Errors: io_error with file, line and column for a file that cannot be read or holds nothing, a field that is
/// not a number of type T, and rows of different length (as in a file that was cut short).
///
///     tensor table = read_csv<float>("digits.csv");   // (1797, 65)
template <element T = float>
requires(!std::is_same_v<T, bool>) SINTER_COLD tensor<T, 2> read_csv(const std::string& path,
                                                                     const csv_options& options = {}) {
  if (options.skip_lines < 0)
    detail::refuse<value_error>({"read_csv: csv_options::skip_lines is ", options.skip_lines, "; it must not be negative"});
  const std::string text = detail::read_file(path, options.max_unpacked);
  std::vector<T> values;
  index_t rows = 0, columns = 0, line = 0;
  for (std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; at < text.size();) {  // a byte order mark says nothing here
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (++line <= options.skip_lines || detail::trimmed(row).empty()) continue;
    index_t column = 0;
    for (bool more = true; more;) {
      const std::size_t comma = row.find(options.separator);
      more = comma != std::string_view::npos;
      std::string_view field = detail::trimmed(row.substr(0, comma));
      if (more) row.remove_prefix(comma + 1);
      ++column;
      if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
      T value{};
      const auto [last, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
      if (problem == std::errc::result_out_of_range && !detail::read_underflow(field, value))
        detail::refuse_csv(path, line, column, {detail::shown(field), " does not fit ", element_name<T>()});
      if (field.empty()) detail::refuse_csv(path, line, column, {"the field is empty"});
      if ((problem != std::errc() && problem != std::errc::result_out_of_range) || last != field.data() + field.size())
        detail::refuse_csv(path, line, column, {detail::shown(field), " is not a number of type ", element_name<T>(),
                                                rows == 0 ? "; csv_options::skip_lines skips a heading" : ""});
      values.push_back(value);
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

// sinter/io/table.hpp: text files of columns with names, numbers and categories.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/core/number.hpp"
#include "sinter/io/csv.hpp"

namespace sinter {

struct table_options {
  char separator = ',';
  bool header = true;                           ///< the first row has the names of the columns; else they are "0", ...
  std::vector<std::string> missing = {};        ///< texts that mean a missing value, such as "NA"; an empty field does
  index_t skip_lines = 0;                       ///< lines before the header
  index_t max_unpacked = default_max_unpacked;  ///< bytes of text that a .gz file may hold
};

struct column_options {
  std::optional<double> fill = {};  ///< in place of missing values, which are an error unless this is given
};

/// A column of texts as numbers: value i is categories[codes(i)].
struct coded_column {
  tensor<std::int64_t, 1> codes;
  std::vector<std::string> categories;
};

// Names in messages.
struct write_dot_numbers_of_the_names;
struct write_dot_names_and_dot_rows;
struct write_dot_numbers_or_dot_categories_of_the_name;

/// The rows of a text file by the names of their columns; see read_table.
class table {
 public:
  // What pandas names otherwise.
  SINTER_MEMBER_NAMED_OTHERWISE(to_tensor, write_dot_numbers_of_the_names)
  SINTER_MEMBER_NAMED_OTHERWISE(head, write_dot_names_and_dot_rows)
  template <class Name, class Problem = name_of_pytorch_or_numpy,
            class Fix = write_dot_numbers_or_dot_categories_of_the_name>
  void operator[](const Name&) const = delete;

  index_t rows() const { return static_cast<index_t>(lines_.size()); }
  const std::vector<std::string>& names() const { return names_; }
  /// All but these, in their order: often the features.
  std::vector<std::string> names_except(const std::vector<std::string>& others) const;

  /// Columns as numbers of type T: one as (rows,), several as (rows, columns), all of them unless names are given.
  /// Errors: index_error for a name that is not there; io_error with file, line and column for a field
  /// that is no number of type T or missing; value_error for a fill that T cannot hold.
  ///
  ///     tensor x = t.numbers<float>(t.names_except({"price"}), {.fill = NAN});
  ///     tensor y = t.numbers<float>("price");
  template <element T = float>
    requires(!std::is_same_v<T, bool>)
  tensor<T, 1> numbers(std::string_view name, const column_options& options = {}) const {
    const auto to = tensor<T, 1>::uninitialized(extents<1>{{rows()}});
    read_column(place_of(name), options, to.data(), 1);
    return to;
  }
  template <element T = float>
    requires(!std::is_same_v<T, bool>)
  tensor<T, 2> numbers(const std::vector<std::string>& names, const column_options& options = {}) const {
    const auto n = static_cast<index_t>(names.size());
    const auto to = tensor<T, 2>::uninitialized(extents<2>{{rows(), n}});
    for (index_t i = 0; i < n; ++i)
      read_column(place_of(names[static_cast<std::size_t>(i)]), options, to.data() + i, n);
    return to;
  }
  template <element T = float>  // {"a", "b"} is a std::string_view, too
    requires(!std::is_same_v<T, bool>)
  tensor<T, 2> numbers(std::initializer_list<std::string_view> names, const column_options& options = {}) const {
    return numbers<T>(std::vector<std::string>(names.begin(), names.end()), options);
  }
  template <element T = float>
    requires(!std::is_same_v<T, bool>)
  tensor<T, 2> numbers(const column_options& options = {}) const {
    const auto n = static_cast<index_t>(names_.size());
    const auto to = tensor<T, 2>::uninitialized(extents<2>{{rows(), n}});
    for (index_t i = 0; i < n; ++i) read_column(static_cast<std::size_t>(i), options, to.data() + i, n);
    return to;
  }

  /// A column of texts, numbered from 0 in their order as bytes, as scikit-learn's LabelEncoder. Where a fill is given
  /// a missing value has it as its code. Errors: as those of numbers().
  ///
  ///     auto [labels, species] = t.categories("species");
  coded_column categories(std::string_view name, const column_options& options = {}) const;
  /// The same with known categories in this order, as for the test data of a model. Errors: also io_error for another
  /// text.
  ///
  ///     tensor y = t.codes("species", {"setosa", "versicolor", "virginica"});
  tensor<std::int64_t, 1> codes(std::string_view name, const std::vector<std::string>& categories,
                                const column_options& options = {}) const;
  /// A column as it is; missing values are empty.
  std::vector<std::string> texts(std::string_view name) const;

 private:
  friend table read_table(const std::string& path, const table_options& options);
  class reader;

  std::size_t place_of(std::string_view name) const;
  std::string_view field(index_t row, std::size_t column) const {
    return fields_[static_cast<std::size_t>(row) * names_.size() + column];
  }
  bool is_missing(std::string_view field) const;
  [[noreturn]] void refuse_field(index_t row, std::size_t column, std::string_view what) const;
  /// Errors: io_error where there is no fill.
  double fill_of(index_t row, std::size_t column, const column_options& options) const;
  template <class T>
  void read_column(std::size_t column, const column_options& options, T* to, index_t step) const {
    if (options.fill) static_cast<void>(T(detail::number<T>(*options.fill)));
    for (index_t row = 0; row < rows(); ++row, to += step) {
      const std::string_view text = field(row, column);
      if (is_missing(text)) *to = detail::number<T>(fill_of(row, column, options));
      else
        *to = detail::csv_number<T>(path_, lines_[static_cast<std::size_t>(row)], static_cast<index_t>(column) + 1,
                                    text, "; categories() numbers texts, table_options::missing names missing values");
    }
  }

  std::string path_;
  std::shared_ptr<const std::string> text_;  // what the fields refer to
  std::vector<std::string> names_, missing_;
  std::vector<std::string_view> fields_;  // row by row
  std::vector<index_t> lines_;            // where each row begins
};

/// Reads a table of text, as RFC 4180 has it: rows end with a line, quoted fields may hold separators, line ends and
/// doubled quotes. Fields without quotes lose the blanks around them; blank lines are skipped; LF, CRLF and CR end
/// lines; a byte order mark and the .gz of a name are taken off. The text stays in memory, and is read as numbers where
/// these are asked for. Errors: value_error for options without sense; io_error with file, line and column for a file
/// that cannot be read or has no rows, two columns of one name, a row with more or fewer fields than the first, a quote
/// without an end, text behind a quoted field, and a NUL byte.
///
///     table t = read_table("iris.csv", {.missing = {"NA"}});
///     tensor x = t.numbers<float>(t.names_except({"species"}));   // (150, 4)
///     auto [y, species] = t.categories("species");                // (150,) and three names
SINTER_SHARED_COLD table read_table(const std::string& path, const table_options& options = {});

#if SINTER_DEFINES

namespace detail {
/// The numbers of texts in the order of these; equal ones stay in theirs.
SINTER_SHARED_COLD std::vector<std::size_t> sorted_places(const std::vector<std::string>& texts) {
  std::vector<std::size_t> order(texts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Not stable_sort, of which clang 19 warns with the library of g++ 12.
  std::sort(order.begin(), order.end(), [&texts](std::size_t a, std::size_t b) {
    const int differ = texts[a].compare(texts[b]);
    return differ != 0 ? differ < 0 : a < b;
  });
  return order;
}
}  // namespace detail

/// Goes through the text once; fields with doubled quotes are written anew, in place.
class table::reader {
 public:
  reader(table& to, std::string& text, const table_options& options) : to_(to), text_(text), options_(options) {}

  void read() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    for (index_t i = 0; i < options_.skip_lines && at_ < text_.size(); ++i) {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      end_line();
    }
    std::vector<std::string_view> row;
    bool has_names = false;
    while (at_ < text_.size()) {
      const index_t line = line_;
      row.clear();
      if (!read_row(row)) continue;
      if (!has_names) {
        has_names = true;
        for (std::size_t i = 0; i < row.size(); ++i)
          to_.names_.push_back(options_.header ? std::string(row[i]) : std::to_string(i));
        if (options_.header) {
          refuse_equal_names(line);
          continue;
        }
      }
      if (row.size() != to_.names_.size())
        detail::refuse_csv(
            to_.path_, line, 0,
            {row.size(), row.size() == 1 ? " field" : " fields", " where the first row has ", to_.names_.size(),
             row.size() < to_.names_.size() && at_ >= text_.size() ? "; the file seems to be cut short" : ""});
      to_.fields_.insert(to_.fields_.end(), row.begin(), row.end());
      to_.lines_.push_back(line);
    }
    if (to_.lines_.empty())
      detail::refuse<io_error>({to_.path_, has_names ? ": holds no rows below its header" : ": holds no rows"});
  }

 private:
  void refuse_equal_names(index_t line) const {
    const std::vector<std::size_t> order = detail::sorted_places(to_.names_);
    for (std::size_t i = 1; i < order.size(); ++i)
      if (to_.names_[order[i - 1]] == to_.names_[order[i]])
        detail::refuse_csv(to_.path_, line, 0,
                           {"columns ", order[i - 1] + 1, " and ", order[i] + 1, " are both named ",
                            detail::shown(to_.names_[order[i]]), "; read it with .header = false and .skip_lines"});
  }
  char here() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  bool at_line_end() const { return here() == '\n' || here() == '\r'; }
  bool at_blank() const { return (here() == ' ' || here() == '\t') && here() != options_.separator; }
  /// Goes to the next line from the end of this one.
  void end_line() {
    if (here() == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    if (at_ < text_.size()) ++at_;
    ++line_;
  }
  [[noreturn]] void fail(index_t line, std::size_t column, std::string_view what) const {
    detail::refuse_csv(to_.path_, line, static_cast<index_t>(column) + 1, {what});
  }

  /// False for a blank line.
  bool read_row(std::vector<std::string_view>& row) {
    while (at_blank()) ++at_;
    if (at_line_end()) {
      end_line();
      return false;
    }
    for (;;) {
      while (at_blank()) ++at_;
      row.push_back(here() == '"' ? quoted(row.size()) : plain(row.size()));
      if (at_line_end()) {
        end_line();
        return true;
      }
      ++at_;  // the separator
    }
  }
  std::string_view plain(std::size_t column) {
    const std::size_t begin = at_;
    for (; !at_line_end() && here() != options_.separator; ++at_)
      if (here() == '\0') fail(line_, column, "a NUL byte; the file is not text, or is in UTF-16");
    return detail::trimmed(std::string_view(text_).substr(begin, at_ - begin), options_.separator);
  }
  std::string_view quoted(std::size_t column) {
    const index_t line = line_;
    const std::size_t begin = ++at_;
    std::size_t end = begin;  // of what is written
    for (;; ++at_) {
      if (at_ >= text_.size()) fail(line, column, "the quote has no end; a quote within one is written twice");
      const char c = text_[at_];
      if (c == '\0') fail(line_, column, "a NUL byte; the file is not text, or is in UTF-16");
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (c == '\n' || (c == '\r' && (at_ + 1 >= text_.size() || text_[at_ + 1] != '\n'))) ++line_;
      text_[end++] = c;
    }
    ++at_;  // the quote
    while (at_blank()) ++at_;
    if (!at_line_end() && here() != options_.separator)
      fail(line_, column, "text behind a quoted field; a quote within one is written twice");
    return std::string_view(text_).substr(begin, end - begin);
  }

  table& to_;
  std::string& text_;
  const table_options& options_;
  std::size_t at_ = 0;
  index_t line_ = 1;
};

SINTER_SHARED_COLD table read_table(const std::string& path, const table_options& options) {
  if (options.skip_lines < 0)
    detail::refuse<value_error>(
        {"read_table: table_options::skip_lines is ", options.skip_lines, "; it must not be negative"});
  if (detail::in_numbers(options.separator) || options.separator == '"')
    detail::refuse<value_error>(
        {"read_table: table_options::separator cannot be a quote or a character of numbers or line ends"});
  const auto text = std::make_shared<std::string>(detail::read_file(path, options.max_unpacked));
  table t;
  t.path_ = path;
  t.text_ = text;
  t.missing_ = options.missing;
  table::reader(t, *text, options).read();
  return t;
}

SINTER_SHARED_COLD std::size_t table::place_of(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return i;
  std::string all;
  for (std::size_t i = 0; i < names_.size() && i < 8; ++i) all += (i > 0 ? ", " : "") + detail::shown(names_[i]);
  detail::refuse<index_error>(
      {path_, ": no column is named ", detail::shown(name), "; there are ", all, names_.size() > 8 ? ", ..." : ""});
}
SINTER_SHARED_COLD std::vector<std::string> table::names_except(const std::vector<std::string>& others) const {
  std::vector<bool> left(names_.size(), true);
  for (const std::string& name : others) left[place_of(name)] = false;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (left[i]) names.push_back(names_[i]);
  return names;
}
SINTER_SHARED bool table::is_missing(std::string_view field) const {
  if (field.empty()) return true;
  for (const std::string& text : missing_)
    if (field == text) return true;
  return false;
}
[[noreturn]] SINTER_SHARED_COLD void table::refuse_field(index_t row, std::size_t column, std::string_view what) const {
  detail::refuse_csv(path_, lines_[static_cast<std::size_t>(row)], static_cast<index_t>(column) + 1, {what});
}
SINTER_SHARED_COLD double table::fill_of(index_t row, std::size_t column, const column_options& options) const {
  if (!options.fill)
    refuse_field(row, column,
                 detail::joined({"the value of ", detail::shown(names_[column]),
                                 " is missing; column_options::fill puts a number in its place"}));
  return *options.fill;
}
SINTER_SHARED_COLD coded_column table::categories(std::string_view name, const column_options& options) const {
  const std::size_t column = place_of(name);
  std::vector<std::string_view> all;
  for (index_t row = 0; row < rows(); ++row)
    if (!is_missing(field(row, column))) all.push_back(field(row, column));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  coded_column coded;
  coded.categories.assign(all.begin(), all.end());
  coded.codes = codes(name, coded.categories, options);
  return coded;
}
SINTER_SHARED_COLD tensor<std::int64_t, 1> table::codes(std::string_view name,
                                                        const std::vector<std::string>& categories,
                                                        const column_options& options) const {
  const std::size_t column = place_of(name);
  const std::vector<std::size_t> order = detail::sorted_places(categories);
  const auto codes = tensor<std::int64_t, 1>::uninitialized(extents<1>{{rows()}});
  for (index_t row = 0; row < rows(); ++row) {
    const std::string_view text = field(row, column);
    std::int64_t& code = codes.data()[row];
    if (is_missing(text)) {
      code = detail::number<std::int64_t>(fill_of(row, column, options));
      continue;
    }
    const auto found = std::lower_bound(order.begin(), order.end(), text,
                                        [&](std::size_t a, std::string_view value) { return categories[a] < value; });
    if (found == order.end() || categories[*found] != text)
      refuse_field(row, column,
                   detail::joined({detail::shown(text), " is none of the ", categories.size(), " categories"}));
    code = static_cast<std::int64_t>(*found);
  }
  return codes;
}
SINTER_SHARED_COLD std::vector<std::string> table::texts(std::string_view name) const {
  const std::size_t column = place_of(name);
  std::vector<std::string> all;
  for (index_t row = 0; row < rows(); ++row) {
    const std::string_view text = field(row, column);
    all.emplace_back(is_missing(text) ? std::string_view() : text);
  }
  return all;
}

#endif  // SINTER_DEFINES

}  // namespace sinter

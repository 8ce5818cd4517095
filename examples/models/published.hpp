// Weights as others publish them: states of models to look at and to rename.
#pragma once

#include <sinter/sinter.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace models {

/// Rows and columns of the matrix of that name. Errors: value_error, with what the model is, where there is none.
inline std::vector<sinter::index_t> matrix_shape(const sinter::nn::state_dict& weights, const std::string& name,
                                                 const char* model) {
  for (const sinter::named_tensor& entry : weights)
    if (entry.name == name && entry.value.shape.size() == 2) return entry.value.shape;
  throw sinter::value_error(std::string("no ") + model + ": no matrix is named " + name);
}

/// How many numbers i from 0 on there are for which a tensor's name begins with "<list>.<i>.".
inline sinter::index_t length_of_list(const sinter::nn::state_dict& weights, const std::string& list) {
  sinter::index_t length = 0;
  for (bool there = true; there; length += there) {
    there = false;
    const std::string next = list + '.' + std::to_string(length) + '.';
    for (const sinter::named_tensor& entry : weights) there = there || entry.name.starts_with(next);
  }
  return length;
}

/// The first value of that name in a valid text of JSON, wherever it stands, as it is written: a number, a "word", or
/// an object without others in it. Nothing where there is none, or null.
inline std::string json_member(std::string_view text, const std::string& name) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::string quoted = '"' + name + '"';
  for (auto at = text.find(quoted); at != text.npos; at = text.find(quoted, at + 1)) {
    const auto colon = text.find_first_not_of(blanks, at + quoted.size());
    if (colon == text.npos || text[colon] != ':') continue;  // not a name, but a word
    text.remove_prefix(text.find_first_not_of(blanks, colon + 1));
    const auto end = text.starts_with('{') ? text.find('}') + 1 : text.find_first_of(",}] \t\r\n");
    const std::string value(text.substr(0, end));
    return value == "null" ? "" : value;
  }
  return {};
}

/// A matrix with its rows as columns.
inline sinter::host_tensor transposed(const sinter::host_tensor& x) {
  const auto rows = static_cast<std::size_t>(x.shape.at(0)), columns = static_cast<std::size_t>(x.shape.at(1));
  const std::size_t size = sinter::element_size(x.element);
  const auto bytes = std::make_shared<std::vector<std::byte>>(x.bytes.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(bytes->data() + (c * rows + r) * size, x.bytes.data() + (r * columns + c) * size, size);
  return {x.element, {x.shape[1], x.shape[0]}, *bytes, bytes};
}

}  // namespace models

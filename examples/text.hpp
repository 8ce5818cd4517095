// The text that the examples of sequences read, as numbers of its letters.
#pragma once

#include <sinter/sinter.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

/// A text letter by letter: letter i is letters[i]. Letters are bytes.
struct letter_text {
  std::string letters;
  std::vector<std::int64_t> ids;

  std::int64_t id_of(char c) const {
    const std::size_t at = letters.find(c);
    if (at == std::string::npos)
      throw sinter::value_error("the letter '" + std::string(1, c) + "' does not occur in the text");
    return static_cast<std::int64_t>(at);
  }
  std::vector<std::int64_t> ids_of(const std::string& text) const {
    std::vector<std::int64_t> all;
    for (const char c : text) all.push_back(id_of(c));
    return all;
  }
};

inline letter_text read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw sinter::io_error(path + ": cannot be read");
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  letter_text text;
  text.letters = all;
  std::sort(text.letters.begin(), text.letters.end(),
            [](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); });
  text.letters.erase(std::unique(text.letters.begin(), text.letters.end()), text.letters.end());
  text.ids = text.ids_of(all);
  return text;
}

/// Inputs and what follows each: `batch` parts of [begin, end) of a text side by side, (steps, batch).
struct text_streams {
  sinter::tensor<std::int64_t, 2> inputs, targets;

  text_streams(const letter_text& text, std::size_t begin, std::size_t end, sinter::index_t batch) {
    const sinter::index_t steps = (static_cast<sinter::index_t>(end - begin) - 1) / batch;
    if (steps < 1) throw sinter::value_error("the text is too short for a batch of " + std::to_string(batch));
    inputs = sinter::zeros<std::int64_t>({steps, batch});
    targets = sinter::zeros<std::int64_t>({steps, batch});
    for (sinter::index_t n = 0; n < batch; ++n)
      for (sinter::index_t t = 0; t < steps; ++t) {
        const std::size_t at = begin + static_cast<std::size_t>(n * steps + t);
        inputs(t, n) = text.ids[at];
        targets(t, n) = text.ids[at + 1];
      }
  }
  sinter::index_t steps() const { return inputs.shape()[0]; }
};

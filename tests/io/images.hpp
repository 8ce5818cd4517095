// tests/io/images.hpp: the files of tests/io/data/images.tsv, and what Pillow makes of them.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "folder.hpp"

/// A file, how it is read ("unchanged", ..., "upright"; "quality" where it is written), and the pixels.
struct image_case {
  std::string name, way, file;
  sinter::tensor<std::uint8_t, 3> pixels;

  bool is_png() const { return name.ends_with(".png"); }
  bool is_jpeg() const { return name.ends_with(".jpg"); }
  sinter::image_options options() const {
    const char* const modes[] = {"unchanged", "gray", "gray_alpha", "rgb", "rgb_alpha"};
    sinter::image_options o;
    for (int i = 0; i < 5; ++i)
      if (way == modes[i]) o.mode = static_cast<sinter::image_mode>(i);
    o.apply_exif_orientation = way == "upright";
    return o;
  }
};

inline std::string from_hexadecimal(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

inline std::vector<image_case> image_cases() {
  std::ifstream in(SINTER_REPOSITORY "/tests/io/data/images.tsv");
  std::vector<image_case> cases;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields(1);
    for (const char c : line) c == '\t' ? void(fields.emplace_back()) : void(fields.back() += c);
    image_case c{fields.at(0), fields.at(1), from_hexadecimal(fields.at(4)), {}};
    if (c.file.empty()) c.file = cases.back().file;
    sinter::extents<3> shape;
    std::size_t at = 0;
    for (int d = 0; d < 3; ++d) {
      shape[d] = std::stoi(fields.at(2).substr(at));
      at = fields.at(2).find(',', at) + 1;
    }
    const std::string pixels = from_hexadecimal(fields.at(3));
    c.pixels = sinter::from_data<std::uint8_t>(std::vector<std::uint8_t>(pixels.begin(), pixels.end()), shape);
    cases.push_back(c);
  }
  return cases;
}

/// The largest difference of two pixels; 256 where the shapes differ.
inline int difference(const sinter::tensor<std::uint8_t, 3>& a, const sinter::tensor<std::uint8_t, 3>& b) {
  if (a.shape() != b.shape()) return 256;
  int most = 0;
  for (sinter::index_t i = 0; i < a.numel(); ++i) most = std::max(most, std::abs(a.data()[i] - b.data()[i]));
  return most;
}

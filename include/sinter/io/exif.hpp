// sinter/io/exif.hpp: how a JPEG file says that its picture is to be turned.
#pragma once

#include <string_view>

#include "sinter/config.hpp"

namespace sinter::detail {

/// The tag Orientation of EXIF, from 1 to 8: 1, upright, where the file has none or its EXIF is damaged.
/// EXIF 2.3, 4.6.4.
SINTER_SHARED_COLD int jpeg_orientation(std::string_view jpeg);

#if SINTER_DEFINES

SINTER_SHARED_COLD int jpeg_orientation(std::string_view jpeg) {
  constexpr std::size_t missing = ~std::size_t{0};  // past the end; what is added to it stays there
  const auto number = [](std::string_view bytes, std::size_t at, std::size_t size, bool little) {
    if (at > bytes.size() || bytes.size() - at < size) return missing;
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + (little ? size - 1 - i : i)]);
    return value;
  };
  for (std::size_t at = 2; number(jpeg, at, 1, false) == 0xff;) {
    const std::size_t marker = number(jpeg, at + 1, 1, false), length = number(jpeg, at + 2, 2, false);
    if (marker == 0xff) {  // filling
      ++at;
      continue;
    }
    if (marker == 0xda || length < 2 || length == missing) break;  // the pixels begin
    const std::string_view segment = jpeg.substr(at + 4).substr(0, length - 2);
    at += 2 + length;
    if (marker != 0xe1 || !segment.starts_with(std::string_view("Exif\0\0", 6))) continue;
    const std::string_view exif = segment.substr(6);  // laid out as a TIFF file
    const bool little = exif.starts_with("II");
    const std::size_t list = number(exif, 4, 4, little);
    if (list == missing) return 1;
    const std::size_t count = number(exif, list, 2, little);
    for (std::size_t i = 0; count != missing && i < count; ++i) {
      const std::size_t entry = list + 2 + 12 * i;
      if (number(exif, entry, 2, little) != 0x112) continue;
      const std::size_t value = number(exif, entry + 8, 2, little);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
    return 1;
  }
  return 1;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

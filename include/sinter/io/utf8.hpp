// sinter/io/utf8.hpp: where the characters of a text in UTF-8 end.
#pragma once

#include <cstdint>
#include <string_view>

#include "sinter/config.hpp"

namespace sinter::detail {

/// Number of bytes of the character that begins `text`, 0 if it is not UTF-8. RFC 3629.
SINTER_SHARED_COLD std::size_t utf8_size(std::string_view text);

/// The place of the first byte that is no part of a character; the size of the text if there is none.
SINTER_SHARED_COLD std::size_t valid_utf8(std::string_view text);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::size_t utf8_size(std::string_view text) {
  const std::uint32_t first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || first >= 0xF8 || text.size() < size) return 0;
  std::uint32_t code = first & (0x7Fu >> size);
  for (char c : text.substr(1, size - 1)) {
    if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  }
  const bool shortest = code >= (size == 2 ? 0x80u : size == 3 ? 0x800u : 0x10000u);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return shortest && !surrogate && code < 0x110000 ? size : 0;
}

SINTER_SHARED_COLD std::size_t valid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : utf8_size(text.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

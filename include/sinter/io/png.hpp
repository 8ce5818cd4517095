// sinter/io/png.hpp: greyscale and RGB images as PNG files.
#pragma once

#include "sinter/core/tensor.hpp"
#include "sinter/io/write.hpp"

namespace sinter {

namespace detail {

SINTER_SHARED_COLD std::uint32_t crc32(std::string_view bytes);

SINTER_SHARED_COLD std::uint32_t adler32(std::string_view bytes);

SINTER_COLD inline void put_big_endian(std::string& to, std::uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(x >> shift & 0xff);
}

/// Deflate with the fixed code (RFC 1951, 3.2.6), whose only matches repeat the byte before: enough for flat images.
SINTER_SHARED_COLD std::string zlib_runs(std::string_view in);

SINTER_SHARED_COLD void put_chunk(std::string& to, const char* type, std::string_view body);

/// The bytes of a PNG file; rows of `width` pixels of `channels` bytes.
SINTER_SHARED_COLD std::string png_bytes(const std::uint8_t* pixels, index_t height, index_t width, int channels);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t c = ~0u;
  for (char b : bytes) {
    c ^= static_cast<unsigned char>(b);
    for (int k = 0; k < 8; ++k) c = (c & 1u) != 0 ? c >> 1 ^ 0xEDB88320u : c >> 1;
  }
  return ~c;
}

SINTER_SHARED_COLD std::uint32_t adler32(std::string_view bytes) {
  std::uint32_t a = 1, b = 0;
  for (char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

SINTER_SHARED_COLD std::string zlib_runs(std::string_view in) {
  std::string out = "\x78\x01";
  std::uint32_t held = 0;
  int bits = 0;
  const auto put = [&](std::uint32_t value, int count) {
    held |= value << bits;
    for (bits += count; bits >= 8; bits -= 8, held >>= 8) out += static_cast<char>(held & 0xff);
  };
  const auto put_code = [&](std::uint32_t code, int count) {  // Huffman codes start from their highest bit
    for (int i = count - 1; i >= 0; --i) put(code >> i & 1u, 1);
  };
  const auto symbol = [&](std::uint32_t s) {
    if (s < 144) put_code(0x30 + s, 8);
    else if (s < 256) put_code(0x190 + s - 144, 9);
    else if (s < 280) put_code(s - 256, 7);
    else put_code(0xC0 + s - 280, 8);
  };
  put(3, 3);  // the last block, fixed code
  for (std::size_t i = 0; i < in.size();) {
    std::size_t run = 0;
    while (i > 0 && run < 258 && i + run < in.size() && in[i + run] == in[i - 1]) ++run;
    if (run == 258) {
      symbol(285);
    } else if (run >= 3) {
      std::uint32_t length =
          static_cast<std::uint32_t>(run) - 3;  // lengths 3-10 cost no extra bits, then 1 for every factor of two
      int extra = 0;
      while (length >> extra >= 8) ++extra;
      symbol(257 + static_cast<std::uint32_t>(extra) * 4 + (length >> extra));
      put(length & ((1u << extra) - 1), extra);
    } else {
      symbol(static_cast<unsigned char>(in[i++]));
      continue;
    }
    put_code(0, 5);  // distance 1
    i += run;
  }
  symbol(256);
  if (bits > 0) put(0, 8 - bits);
  put_big_endian(out, adler32(in));
  return out;
}

SINTER_SHARED_COLD void put_chunk(std::string& to, const char* type, std::string_view body) {
  put_big_endian(to, static_cast<std::uint32_t>(body.size()));
  const std::string tagged = type + std::string(body);
  to += tagged;
  put_big_endian(to, crc32(tagged));
}

SINTER_SHARED_COLD std::string png_bytes(const std::uint8_t* pixels, index_t height, index_t width, int channels) {
  if (height < 1 || width < 1 || height > 1 << 24 || width > 1 << 24)
    refuse<shape_error>({"png: an image of ", height, " x ", width, " pixels cannot be written"});
  std::string head;
  put_big_endian(head, static_cast<std::uint32_t>(width));
  put_big_endian(head, static_cast<std::uint32_t>(height));
  head += {8, static_cast<char>(channels == 3 ? 2 : 0), 0, 0, 0};
  std::string rows;
  const auto stride = static_cast<std::size_t>(width * channels);
  for (index_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels) + static_cast<std::size_t>(y) * stride, stride);
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  put_chunk(png, "IHDR", head);
  put_chunk(png, "IDAT", zlib_runs(rows));
  put_chunk(png, "IEND", "");
  return png;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Writes an image: (height, width) in grey or (height, width, 3) in RGB. Errors: shape_error for other extents,
/// io_error when the file cannot be written; then none is left behind.
///
///     write_png("digit.png", image);
template <int R>
  requires(R == 2 || R == 3)
void write_png(const std::string& path, const tensor<std::uint8_t, R>& image) {
  if constexpr (R == 3)
    if (image.shape()[2] != 3)
      detail::refuse<shape_error>({"write_png: shape ", image.shape(), " is not (height, width, 3)"});
  const auto dense = image.contiguous();
  detail::write_file(path, detail::png_bytes(dense.data(), dense.shape()[0], dense.shape()[1], R == 3 ? 3 : 1));
}

}  // namespace sinter

// sinter/io/png.hpp: PNG files: written by libpng where SINTER_WITH_PNG is defined as 1, otherwise by this file, and
// read by libpng.
#pragma once

#include "sinter/io/pixels.hpp"
#include "sinter/io/write.hpp"

#if SINTER_DEFINES && SINTER_WITH_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#endif

namespace sinter {

namespace detail {

/// A cyclic sum of 32 bits; unless given of the polynomial that PNG and gzip have. The lowest bit is that of x^31.
SINTER_SHARED_COLD std::uint32_t crc32(std::string_view bytes, std::uint32_t polynomial = 0xEDB88320u);

SINTER_SHARED_COLD std::uint32_t adler32(std::string_view bytes);

SINTER_COLD inline void put_big_endian(std::string& to, std::uint32_t x) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(x >> shift & 0xff);
}

/// Deflate with the fixed code (RFC 1951, 3.2.6), whose only matches repeat the byte before: enough for flat images.
SINTER_SHARED_COLD std::string zlib_runs(std::string_view in);

SINTER_SHARED_COLD void put_chunk(std::string& to, const char* type, std::string_view body);

inline constexpr index_t png_most_rows = 1'000'000;  ///< and columns: what libpng takes, unless it is told otherwise

/// Errors: shape_error.
SINTER_COLD inline void check_png_size(index_t height, index_t width) {
  if (height < 1 || width < 1 || height > png_most_rows || width > png_most_rows)
    refuse<shape_error>({"png: an image of ", height, " x ", width, " pixels cannot be written"});
}

/// The bytes of a PNG file; rows of `width` pixels of `channels` bytes. Larger than need be: see zlib_runs().
SINTER_SHARED_COLD std::string png_bytes(const std::uint8_t* pixels, index_t height, index_t width, int channels);

/// The same, well packed where libpng is there.
SINTER_SHARED_COLD std::string packed_png_bytes(const std::uint8_t* pixels, index_t height, index_t width,
                                                int channels);

/// The pixels of a PNG file, of which `bytes` has the signature. Errors: io_error that begins with `name`.
SINTER_SHARED_COLD pixels read_png(std::string_view bytes, const std::string& name, image_mode mode,
                                   index_t max_pixels);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::uint32_t crc32(std::string_view bytes, std::uint32_t polynomial) {
  std::uint32_t c = ~0u;
  for (char b : bytes) {
    c ^= static_cast<unsigned char>(b);
    for (int k = 0; k < 8; ++k) c = (c & 1u) != 0 ? c >> 1 ^ polynomial : c >> 1;
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
  check_png_size(height, width);
  std::string head;
  put_big_endian(head, static_cast<std::uint32_t>(width));
  put_big_endian(head, static_cast<std::uint32_t>(height));
  head += {8, "\0\4\2\6"[channels - 1], 0, 0, 0};
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

#if SINTER_WITH_PNG

/// Not by libpng's simplified interface, which blends alpha into a background and colours by gamma. What libpng finds
/// wrong it tells by a jump to the setjmp of the function that is at work; so these have no objects with destructors,
/// and return false.
class png_input {
 public:
  SINTER_COLD explicit png_input(std::string_view bytes)
      : rest_(bytes),
        png_(::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)),
        info_(png_ == nullptr ? nullptr : ::png_create_info_struct(png_)) {}
  png_input(const png_input&) = delete;
  png_input& operator=(const png_input&) = delete;
  ~png_input() { ::png_destroy_read_struct(&png_, &info_, nullptr); }

  bool is_ready() const { return info_ != nullptr; }
  const char* problem() const { return problem_; }
  png_uint_32 height() const { return ::png_get_image_height(png_, info_); }
  png_uint_32 width() const { return ::png_get_image_width(png_, info_); }
  int channels() const { return ::png_get_channels(png_, info_); }
  /// Of a pixel, in the file.
  int bits() const { return channels() * ::png_get_bit_depth(png_, info_); }

  /// Reads what stands before the pixels.
  SINTER_COLD bool read_head() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    ::png_set_read_fn(png_, this, on_read);
    ::png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);
    ::png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
    // Of the chunks that may be there tRNS only: gamma and profiles would change what libpng makes of the colours, and
    // texts might unpack to much.
    ::png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
#endif
    ::png_read_info(png_, info_);
    return true;
  }

  /// Asks for bytes, and for the channels of which planes_of() makes those of `mode`.
  SINTER_COLD bool convert(image_mode mode) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const int kind = ::png_get_color_type(png_, info_);
    const bool wants_alpha = mode == image_mode::gray_alpha || mode == image_mode::rgb_alpha;
    ::png_set_strip_16(png_);
    if (kind == PNG_COLOR_TYPE_PALETTE && mode == image_mode::unchanged) ::png_set_packing(png_);
    else if (kind == PNG_COLOR_TYPE_PALETTE) ::png_set_palette_to_rgb(png_);
    else if (kind == PNG_COLOR_TYPE_GRAY) ::png_set_expand_gray_1_2_4_to_8(png_);
    if (wants_alpha && ::png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) ::png_set_tRNS_to_alpha(png_);
    passes_ = ::png_set_interlace_handling(png_);
    ::png_read_update_info(png_, info_);
    if (::png_get_rowbytes(png_, info_) != std::size_t{width()} * static_cast<std::size_t>(channels()))
      ::png_error(png_, "libpng does not reduce its pixels to bytes");
    return true;
  }

  /// All rows, and what stands behind them.
  SINTER_COLD bool read_rows(std::uint8_t* to) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    const std::size_t stride = ::png_get_rowbytes(png_, info_);
    const png_uint_32 rows = height();
    for (int pass = 0; pass < passes_; ++pass)
      for (png_uint_32 y = 0; y < rows; ++y) ::png_read_row(png_, to + y * stride, nullptr);
    ::png_read_end(png_, nullptr);
    return true;
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto* const self = static_cast<png_input*>(::png_get_error_ptr(png));
    std::strncpy(self->problem_, text, sizeof problem_ - 1);
    ::png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t n) {
    std::string_view& rest = static_cast<png_input*>(::png_get_io_ptr(png))->rest_;
    if (rest.size() < n) ::png_error(png, "the file ends too early");
    std::memcpy(to, rest.data(), n);
    rest.remove_prefix(n);
  }

  std::string_view rest_;
  char problem_[128] = "";
  int passes_ = 1;
  png_structp png_;
  png_infop info_;
};

SINTER_SHARED_COLD pixels read_png(std::string_view bytes, const std::string& name, image_mode mode,
                                   index_t max_pixels) {
  png_input file(bytes);
  const auto must = [&](bool done) {
    if (!done) refuse<io_error>({name, ": the PNG file is damaged or cut short: ", file.problem()});
  };
  if (!file.is_ready())
    refuse<io_error>({name, ": libpng does not start: it lacks memory, or is not of the version of its header"});
  must(file.read_head());
  const index_t height = file.height(), width = file.width();
  check_pixels(name, height, width, max_pixels);
  // Deflate makes 258 bytes of two bits at best.
  const double claimed = static_cast<double>(height) * static_cast<double>(width) * file.bits() / 8;
  if (claimed > 1032. * static_cast<double>(bytes.size()))
    refuse<io_error>({name, ": claims ", height, " x ", width, " pixels, which ", bytes.size(),
                      " bytes cannot hold; the PNG file is damaged or cut short"});
  must(file.convert(mode));
  pixels to(height, width, file.channels());
  must(file.read_rows(to.bytes.data()));
  return to;
}

SINTER_SHARED_COLD std::string packed_png_bytes(const std::uint8_t* pixels, index_t height, index_t width,
                                                int channels) {
  check_png_size(height, width);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  constexpr png_uint_32 formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  image.format = formats[channels - 1];
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string to(size, '\0');
  if (::png_image_write_to_memory(&image, to.data(), &size, 0, pixels, 0, nullptr) == 0)
    refuse<io_error>({"write_png: libpng does not pack the image: ", image.message});
  to.resize(size);
  return to;
}

#else

SINTER_SHARED_COLD pixels read_png(std::string_view, const std::string& name, image_mode, index_t) {
  refuse<io_error>(
      {name,
       ": is a PNG file, and this program is compiled without libpng: compile with -DSINTER_WITH_PNG=1 and "
       "link with -lpng (Debian: libpng-dev; CMake: -DSINTER_WITH_PNG=ON)"});
}

SINTER_SHARED_COLD std::string packed_png_bytes(const std::uint8_t* pixels, index_t height, index_t width,
                                                int channels) {
  return png_bytes(pixels, height, width, channels);
}

#endif  // SINTER_WITH_PNG

#endif  // SINTER_DEFINES

}  // namespace detail

/// Writes an image as torchvision.io.write_png does, (channels, height, width): grey, grey and alpha, RGB or RGBA.
/// Errors: shape_error for other extents, io_error when the file cannot be written; then none is left behind.
///
///     write_png(read_image("photo.jpg"), "photo.png");
SINTER_SHARED_COLD void write_png(const tensor<std::uint8_t, 3>& image, const std::string& path);

#if SINTER_DEFINES

SINTER_SHARED_COLD void write_png(const tensor<std::uint8_t, 3>& image, const std::string& path) {
  const detail::pixels p = detail::pixels_of("write_png", image, "1234", detail::png_most_rows);
  detail::write_file(path, detail::packed_png_bytes(p.bytes.data(), p.height, p.width, p.channels));
}

#endif  // SINTER_DEFINES

/// The same of an image whose channels come last, or that has none: (height, width, 3) in RGB or (height, width) in
/// grey.
///
///     write_png("digit.png", image);
template <int R>
  requires(R == 2 || R == 3)
void write_png(const std::string& path, const tensor<std::uint8_t, R>& image) {
  if constexpr (R == 3)
    if (image.shape()[2] != 3)
      detail::refuse<shape_error>({"write_png: shape ", image.shape(), " is not (height, width, 3)"});
  const auto dense = image.contiguous();
  detail::write_file(path, detail::packed_png_bytes(dense.data(), dense.shape()[0], dense.shape()[1], R == 3 ? 3 : 1));
}

}  // namespace sinter

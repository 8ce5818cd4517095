// sinter/io/image.hpp: reads pictures, PNG and JPEG files, as tensors.
#pragma once

#include <span>

#include "sinter/io/exif.hpp"
#include "sinter/io/file.hpp"
#include "sinter/io/jpeg.hpp"
#include "sinter/io/png.hpp"

namespace sinter {

struct image_options {
  image_mode mode = image_mode::unchanged;
  bool apply_exif_orientation = false;          ///< turns a JPEG as its EXIF says
  index_t max_pixels = index_t{1} << 28;        ///< that a file may have, whatever it claims
  index_t max_unpacked = default_max_unpacked;  ///< bytes that a .gz file may hold
};

/// A picture as torchvision.io.read_image reads it: (channels, height, width), from 0 to 255. Its first bytes tell what
/// the file is, a PNG or a JPEG; 16 bits of a PNG are reduced to the higher 8. Errors: io_error for a file that is
/// neither, is damaged or cut short, has more than max_pixels, or needs a library without which the program is
/// compiled: libpng (SINTER_WITH_PNG), libjpeg-turbo (SINTER_WITH_JPEG).
///
///     tensor photo = read_image("photo.jpg");                            // (3, 480, 640)
///     tensor digit = read_image("digit.png", {.mode = image_mode::gray});  // (1, 28, 28)
SINTER_SHARED_COLD tensor<std::uint8_t, 3> read_image(const std::string& path, const image_options& options = {});

/// The same of the bytes of such a file.
SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::span<const std::uint8_t> bytes,
                                                        const image_options& options = {});
SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::string_view bytes, const image_options& options = {});

namespace detail {

enum class image_format { png, jpeg };

/// By its first bytes. Errors: io_error.
SINTER_SHARED_COLD image_format image_format_of(std::string_view head, const std::string& name);

SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::string_view bytes, const std::string& name,
                                                        const image_options& options);

#if SINTER_DEFINES

SINTER_SHARED_COLD image_format image_format_of(std::string_view head, const std::string& name) {
  if (head.starts_with("\x89PNG\r\n\x1a\n")) return image_format::png;
  if (head.starts_with("\xff\xd8\xff")) return image_format::jpeg;
  refuse<io_error>({name, head.empty() ? ": is empty" : ": is neither a PNG nor a JPEG file"});
}

SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::string_view bytes, const std::string& name,
                                                        const image_options& options) {
  if (image_format_of(bytes, name) == image_format::png)
    return planes_of(read_png(bytes, name, options.mode, options.max_pixels), options.mode);
  return planes_of(read_jpeg(bytes, name, options.mode, options.max_pixels), options.mode,
                   options.apply_exif_orientation ? jpeg_orientation(bytes) : 1);
}

#endif  // SINTER_DEFINES

}  // namespace detail

#if SINTER_DEFINES

SINTER_SHARED_COLD tensor<std::uint8_t, 3> read_image(const std::string& path, const image_options& options) {
  detail::byte_source source(path, options.max_unpacked);
  std::string bytes(8, '\0');
  bytes.resize(source.read(bytes.data(), bytes.size()));
  detail::image_format_of(bytes, path);  // what is no picture is not read to its end
  detail::read_more(source, bytes, std::size_t(-1));
  return detail::decode_image(bytes, path, options);
}

SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::span<const std::uint8_t> bytes,
                                                        const image_options& options) {
  return decode_image(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), options);
}
SINTER_SHARED_COLD tensor<std::uint8_t, 3> decode_image(std::string_view bytes, const image_options& options) {
  return detail::decode_image(bytes, "decode_image", options);
}

#endif  // SINTER_DEFINES

}  // namespace sinter

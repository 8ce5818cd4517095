// sinter/io/jpeg.hpp: JPEG files, read and written by libjpeg-turbo where SINTER_WITH_JPEG is defined as 1.
#pragma once

#include "sinter/io/pixels.hpp"
#include "sinter/io/write.hpp"

#if SINTER_DEFINES && SINTER_WITH_JPEG
#include <turbojpeg.h>

#include <memory>
#endif

namespace sinter {

struct jpeg_options {
  int quality = 75;  ///< from 1 to 100
};

/// Writes an image as torchvision.io.write_jpeg does, (1, height, width) in grey or (3, height, width) in RGB; colours
/// have half the resolution. Errors: value_error for a quality that is not from 1 to 100, shape_error for other
/// extents, io_error when the file cannot be written, and in a program without libjpeg-turbo.
///
///     write_jpeg(image, "photo.jpg", {.quality = 90});
SINTER_SHARED_COLD void write_jpeg(const tensor<std::uint8_t, 3>& image, const std::string& path,
                                   const jpeg_options& options = {});

namespace detail {

inline constexpr index_t jpeg_most_rows = 65500;  ///< and columns: what libjpeg takes

/// The pixels of a JPEG file: 1 channel where it is grey or `mode` is, otherwise 3. Errors: io_error that begins with
/// `name`.
SINTER_SHARED_COLD pixels read_jpeg(std::string_view bytes, const std::string& name, image_mode mode,
                                    index_t max_pixels);

/// The bytes of a JPEG file. `name` begins the text of errors.
SINTER_SHARED_COLD std::string jpeg_bytes(const pixels& from, int quality, const std::string& name);

#if SINTER_DEFINES

#if SINTER_WITH_JPEG

class turbojpeg_handle {
 public:
  /// What tjInitDecompress() or tjInitCompress() gave.
  SINTER_COLD turbojpeg_handle(::tjhandle handle, const std::string& name) : handle_(handle) {
    if (handle_ == nullptr) refuse<io_error>({name, ": libjpeg-turbo does not start: ", ::tjGetErrorStr2(nullptr)});
  }
  turbojpeg_handle(const turbojpeg_handle&) = delete;
  turbojpeg_handle& operator=(const turbojpeg_handle&) = delete;
  ~turbojpeg_handle() { ::tjDestroy(handle_); }

  ::tjhandle get() const { return handle_; }
  const char* problem() const { return ::tjGetErrorStr2(handle_); }

 private:
  ::tjhandle handle_;
};

SINTER_SHARED_COLD pixels read_jpeg(std::string_view bytes, const std::string& name, image_mode mode,
                                    index_t max_pixels) {
  const turbojpeg_handle reader(::tjInitDecompress(), name);
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<unsigned long>(bytes.size());
  const auto refuse_file = [&](const char* problem) {
    refuse<io_error>({name, ": the JPEG file is damaged or cut short: ", problem});
  };
  // It may fail at a sampling of colours that has no name, when the rest is known, and the pixels can be read.
  int width = 0, height = 0, sampling = -1, space = -1;
  const int failed = ::tjDecompressHeader3(reader.get(), data, size, &width, &height, &sampling, &space);
  if (width < 1 || height < 1 || space < 0) refuse_file(failed != 0 ? reader.problem() : "it has no image");
  check_pixels(name, height, width, max_pixels);
  const bool inks = space == TJCS_CMYK || space == TJCS_YCCK;
  const bool grey = !inks && (space == TJCS_GRAY || mode == image_mode::gray || mode == image_mode::gray_alpha);
  const int format = inks ? TJPF_CMYK : grey ? TJPF_GRAY : TJPF_RGB;
  pixels to(height, width, ::tjPixelSize[format]);
  // Warnings are errors: without the first flag what is missing in a file would be grey.
  const int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;
  if (::tjDecompress2(reader.get(), data, size, to.bytes.data(), width, 0, height, format, flags) != 0)
    refuse_file(reader.problem());
  if (inks) {  // as Adobe writes them: 255 is no ink
    to.channels = 3;
    const std::uint8_t* ink = to.bytes.data();
    std::uint8_t* out = to.bytes.data();
    for (index_t i = to.height * to.width; i > 0; --i, ink += 4) {
      const unsigned black = ink[3];
      for (int c = 0; c < 3; ++c) *out++ = static_cast<std::uint8_t>((ink[c] * black + 127) / 255);
    }
  }
  return to;
}

SINTER_SHARED_COLD std::string jpeg_bytes(const pixels& from, int quality, const std::string& name) {
  const turbojpeg_handle writer(::tjInitCompress(), name);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool grey = from.channels == 1;
  const int problem = ::tjCompress2(writer.get(), from.bytes.data(), static_cast<int>(from.width), 0,
                                    static_cast<int>(from.height), grey ? TJPF_GRAY : TJPF_RGB, &bytes, &size,
                                    grey ? TJSAMP_GRAY : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(bytes, ::tjFree);
  if (problem != 0) refuse<io_error>({name, ": libjpeg-turbo does not pack the image: ", writer.problem()});
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

#else

inline constexpr const char* without_jpeg =
    "this program is compiled without libjpeg-turbo: compile with -DSINTER_WITH_JPEG=1 and link with -lturbojpeg "
    "(Debian: libturbojpeg0-dev; CMake: -DSINTER_WITH_JPEG=ON)";

SINTER_SHARED_COLD pixels read_jpeg(std::string_view, const std::string& name, image_mode, index_t) {
  refuse<io_error>({name, ": is a JPEG file, and ", without_jpeg});
}

SINTER_SHARED_COLD std::string jpeg_bytes(const pixels&, int, const std::string& name) {
  refuse<io_error>({name, ": cannot be written: ", without_jpeg});
}

#endif  // SINTER_WITH_JPEG

#endif  // SINTER_DEFINES

}  // namespace detail

#if SINTER_DEFINES

SINTER_SHARED_COLD void write_jpeg(const tensor<std::uint8_t, 3>& image, const std::string& path,
                                   const jpeg_options& options) {
  if (options.quality < 1 || options.quality > 100)
    detail::refuse<value_error>({"write_jpeg: the quality is ", options.quality, "; it must be from 1 to 100"});
  const detail::pixels p = detail::pixels_of("write_jpeg", image, "13", detail::jpeg_most_rows);
  detail::write_file(path, detail::jpeg_bytes(p, options.quality, path));
}

#endif  // SINTER_DEFINES

}  // namespace sinter

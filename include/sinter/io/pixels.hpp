// sinter/io/pixels.hpp: pictures between a file, where the channels of a pixel lie side by side, and a tensor of
// planes.
#pragma once

#include <algorithm>
#include <string>

#include "sinter/core/tensor.hpp"

namespace sinter {

/// The channels that a picture is read with, as torchvision.io.ImageReadMode.
enum class image_mode {
  unchanged,   ///< those of the file: 1 to 4; of a PNG with a palette 1, the indices into it
  gray,        ///< (1,H,W): 0.299 red + 0.587 green + 0.114 blue, of a JPEG its own luminance
  gray_alpha,  ///< (2,H,W): an alpha of 255 where the file has none
  rgb,         ///< (3,H,W): grey three times where the file has no colours
  rgb_alpha    ///< (4,H,W)
};

namespace detail {

/// Rows from the top, of pixels of `channels` bytes: grey, grey and alpha, RGB or RGBA.
struct pixels {
  index_t height = 0, width = 0;
  int channels = 0;
  tensor<std::uint8_t, 1> bytes;

  pixels(index_t h, index_t w, int c)
      : height(h), width(w), channels(c), bytes(tensor<std::uint8_t, 1>::uninitialized(extents<1>{{h * w * c}})) {}
};

/// (channels, height, width), in the channels of `mode`: alpha is left out or 255, whatever has colours may become
/// grey. Upright where `orientation` is EXIF's, from 1 to 8.
SINTER_SHARED tensor<std::uint8_t, 3> planes_of(const pixels& from, image_mode mode, int orientation = 1);

/// The pixels of planes (channels, height, width). Errors: shape_error that begins with `name` for channels other than
/// those of `allowed`, such as "13", and for extents that are not from 1 to `most`.
SINTER_SHARED_COLD pixels pixels_of(const char* name, const tensor<std::uint8_t, 3>& image, std::string_view allowed,
                                    index_t most);

/// Before memory is taken for what a file claims. Errors: io_error for more pixels than `most`.
SINTER_SHARED_COLD void check_pixels(const std::string& name, index_t height, index_t width, index_t most);

#if SINTER_DEFINES

SINTER_SHARED tensor<std::uint8_t, 3> planes_of(const pixels& from, image_mode mode, int orientation) {
  const index_t rows = from.height, columns = from.width;
  const bool upside_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool mirrored = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool turned = orientation >= 5;
  const index_t first = (upside_down ? (rows - 1) * columns : 0) + (mirrored ? columns - 1 : 0);
  const index_t down = upside_down ? -columns : columns, right = mirrored ? -1 : 1;

  const int channels = mode == image_mode::unchanged ? from.channels : static_cast<int>(mode);
  const index_t height = turned ? columns : rows, width = turned ? rows : columns;
  const auto to = tensor<std::uint8_t, 3>::uninitialized(extents<3>{{channels, height, width}});
  std::uint8_t* out = to.data();
  const index_t each = from.channels, step = (turned ? down : right) * each;
  const auto fill = [&](int channel, const auto& value) {
    for (index_t y = 0; y < height; ++y) {
      const std::uint8_t* pixel = from.bytes.data() + (first + y * (turned ? right : down)) * each + channel;
      for (index_t x = 0; x < width; ++x, pixel += step) *out++ = value(pixel);
    }
  };
  const bool has_colours = from.channels >= 3, has_alpha = from.channels % 2 == 0;
  for (int c = 0; c < channels; ++c) {
    const bool is_alpha = channels % 2 == 0 && c == channels - 1;
    if (is_alpha && !has_alpha) out = std::fill_n(out, height * width, std::uint8_t{255});
    else if (!is_alpha && channels < 3 && has_colours)
      fill(0, [](const std::uint8_t* p) {  // ITU-R BT.601 in units of 2^-16
        return static_cast<std::uint8_t>((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 32768u) >> 16);
      });
    else fill(is_alpha ? from.channels - 1 : has_colours ? c : 0, [](const std::uint8_t* p) { return *p; });
  }
  return to;
}

SINTER_SHARED_COLD pixels pixels_of(const char* name, const tensor<std::uint8_t, 3>& image, std::string_view allowed,
                                    index_t most) {
  if (!image.defined()) refuse<shape_error>({name, ": the image is an empty (default constructed) tensor"});
  const extents<3> shape = image.shape();
  if (shape[0] < 1 || shape[0] > 4 || allowed.find(static_cast<char>('0' + shape[0])) == std::string_view::npos)
    refuse<shape_error>({name, ": shape ", shape, " is not (channels, height, width) with ",
                         allowed.size() > 2 ? "1 to 4" : "1 or 3", " channels"});
  if (shape[1] < 1 || shape[2] < 1 || shape[1] > most || shape[2] > most)
    refuse<shape_error>({name, ": an image of ", shape[1], " x ", shape[2],
                         " pixels cannot be written; such a file has 1 to ", most, " rows and columns"});
  pixels to(shape[1], shape[2], static_cast<int>(shape[0]));
  const extents<3> strides = image.strides();
  std::uint8_t* out = to.bytes.data();
  for (index_t y = 0; y < shape[1]; ++y)
    for (index_t x = 0; x < shape[2]; ++x)
      for (index_t c = 0; c < shape[0]; ++c) *out++ = image.data()[c * strides[0] + y * strides[1] + x * strides[2]];
  return to;
}

SINTER_SHARED_COLD void check_pixels(const std::string& name, index_t height, index_t width, index_t most) {
  if (most < 1) refuse<value_error>({name, ": max_pixels is ", most, "; it must be at least 1"});
  const index_t limit = std::min(most, index_t{1} << 56);  // so that bytes can be counted
  if (height > limit / width)
    refuse<io_error>({name, ": claims ", height, " x ", width, " pixels, more than the ", limit,
                      " that max_pixels in the options allows"});
}

#endif  // SINTER_DEFINES

}  // namespace detail
}  // namespace sinter

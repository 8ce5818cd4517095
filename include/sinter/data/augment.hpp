// sinter/data/augment.hpp: random changes of batches of images in training, drawn from a generator.
#pragma once

#include <algorithm>

#include "sinter/data/image_batch.hpp"

namespace sinter {

struct crop_options {
  index_t padding = 0;  ///< zeros around each image before it is cropped
};

/// Cuts a window of height size[0] and width size[1] out of each image: (N, C, H, W) => (N, C, size[0], size[1]). Each
/// image has a place of its own, with the same chance for every place that lies in the image and its padding; pixels of
/// the padding are 0. As torchvision's RandomCrop, which treats a batch as one image. Draws
/// `randint(gen, 0, H + 2 * padding - size[0] + 1, {N})` for the tops, then likewise for the lefts. Errors: value_error
/// for a negative padding or a size below 1; shape_error for a size that exceeds the padded image.
///
///     const tensor cropped = random_crop(gen, images, {32, 32}, {.padding = 4});
template <element T, auto Shape, device D>
  requires detail::image_batch<tensor<T, Shape, D>>
tensor<T, 4, D> random_crop(generator& gen, const tensor<T, Shape, D>& images, const index_t (&size)[2],
                            const crop_options& options = {}) {
  if (!images.defined()) detail::refuse<value_error>({"random_crop: the images are undefined"});
  const index_t n = images.shape()[0], channels = images.shape()[1], pad = options.padding;
  const index_t height = images.shape()[2], width = images.shape()[3];
  const index_t largest = std::numeric_limits<index_t>::max() / 4;
  if (pad < 0 || pad > largest || size[0] < 1 || size[1] < 1)
    detail::refuse<value_error>({"random_crop: a window of ", size[0], " by ", size[1], " and a padding of ", pad,
                                 "; the window must have pixels and the padding must not be negative"});
  if (size[0] > height + 2 * pad || size[1] > width + 2 * pad)
    detail::refuse<shape_error>({"random_crop: a window of ", size[0], " by ", size[1], " in images of shape ",
                                 images.shape(), " with a padding of ", pad, "; pad more or make the window smaller"});
  const tensor tops = randint<index_t>(gen, 0, height + 2 * pad - size[0] + 1, {n});
  const tensor lefts = randint<index_t>(gen, 0, width + 2 * pad - size[1] + 1, {n});
  const tensor<T, Shape, D> from = images.contiguous();
  auto to = tensor<T, 4, D>::uninitialized(extents<4>{{n, channels, size[0], size[1]}});
  const T* image = from.data();
  T* out = to.data();
  for (index_t i = 0; i < n; ++i) {
    const index_t top = tops.data()[i] - pad, left = lefts.data()[i] - pad;  // in the image, negative in the padding
    const index_t skip = std::clamp(-left, index_t{0}, size[1]);             // zeros on the left
    const index_t end = std::clamp(width - left, skip, size[1]);             // of what is copied
    for (index_t c = 0; c < channels; ++c, image += height * width)
      for (index_t y = top; y < top + size[0]; ++y, out += size[1]) {
        const bool inside = y >= 0 && y < height && end > skip;
        std::fill(out, out + (inside ? skip : size[1]), T(0));
        if (!inside) continue;
        std::copy(image + y * width + left + skip, image + y * width + left + end, out + skip);
        std::fill(out + end, out + size[1], T(0));
      }
  }
  return to;
}
/// The same of a square window.
template <element T, auto Shape, device D>
  requires detail::image_batch<tensor<T, Shape, D>>
tensor<T, 4, D> random_crop(generator& gen, const tensor<T, Shape, D>& images, index_t size,
                            const crop_options& options = {}) {
  return random_crop(gen, images, {size, size}, options);
}

/// Mirrors each image left to right with probability p: (N, C, H, W) => the same. As torchvision's
/// RandomHorizontalFlip, which treats a batch as one image. Draws `bernoulli(gen, p, {N})`. Errors: value_error for p
/// outside of [0, 1].
///
///     const tensor flipped = random_horizontal_flip(gen, images);
template <element T, auto Shape, device D>
  requires detail::image_batch<tensor<T, Shape, D>>
tensor<T, 4, D> random_horizontal_flip(generator& gen, const tensor<T, Shape, D>& images, double p = 0.5) {
  if (!images.defined()) detail::refuse<value_error>({"random_horizontal_flip: the images are undefined"});
  const index_t n = images.shape()[0], width = images.shape()[3];
  const index_t rows = images.shape()[1] * images.shape()[2];
  const tensor flips = bernoulli<bool>(gen, p, {n});
  const tensor<T, Shape, D> from = images.contiguous();
  auto to = tensor<T, 4, D>::uninitialized(extents<4>{{n, images.shape()[1], images.shape()[2], width}});
  const T* row = from.data();
  T* out = to.data();
  for (index_t i = 0; i < n; ++i)
    for (index_t r = 0; r < rows; ++r, row += width, out += width) {
      if (flips.data()[i]) std::reverse_copy(row, row + width, out);
      else std::copy(row, row + width, out);
    }
  return to;
}

template <element T, auto Shape, device D, class Problem = augmentation_of_other_than_host_images_of_rank_4,
          class Fix = reshape_to_n_c_h_w_and_augment_before_dot_to>
  requires(!detail::image_batch<tensor<T, Shape, D>>)
void random_crop(generator& gen, const tensor<T, Shape, D>& images, const index_t (&size)[2],
                 const crop_options& options = {}) = delete;
template <element T, auto Shape, device D, class Problem = augmentation_of_other_than_host_images_of_rank_4,
          class Fix = reshape_to_n_c_h_w_and_augment_before_dot_to>
  requires(!detail::image_batch<tensor<T, Shape, D>>)
void random_horizontal_flip(generator& gen, const tensor<T, Shape, D>& images, double p = 0.5) = delete;

}  // namespace sinter

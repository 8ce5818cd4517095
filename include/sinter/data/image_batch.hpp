// sinter/data/image_batch.hpp: the batches of images that are changed at random in training.
#pragma once

#include <vector>

#include "sinter/core/tensor.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

// Names in messages.
struct augmentation_of_other_than_host_images_of_rank_4;
struct reshape_to_n_c_h_w_and_augment_before_dot_to;
struct augmentation_of_pixels_that_are_integers;
struct cast_to_float_and_divide_by_255;

namespace detail {

template <class X>
concept image_batch = X::rank == 4 && is_cpu_v<device_of<X>>;

template <class X>
constexpr auto find_image_mistake() {
  if constexpr (!is_tensor<X>) return not_operands{};
  else if constexpr (!image_batch<X>)
    return mistake<augmentation_of_other_than_host_images_of_rank_4, reshape_to_n_c_h_w_and_augment_before_dot_to>{};
  else if constexpr (!floating_element<element_of<X>>)
    return mistake<augmentation_of_pixels_that_are_integers, cast_to_float_and_divide_by_255>{};
  else return fitting<element_of<X>>{};
}
/// Of images whose elements are floating-point numbers.
template <class X>
using image_mistake = decltype(find_image_mistake<X>());

template <class X>
void check_images(const char* name, const X& images) {
  if (!images.defined()) refuse<value_error>({name, ": the images are undefined"});
}

/// Numbers in [0, 1), `each` for every one of n samples: the same for a sample wherever the batch is cut, under
/// samples_from. One draw.
inline tensor<double, 2> numbers_of_samples(generator& gen, index_t n, index_t each) {
  return rand<double>(gen, extents<2>{{n, each}});
}

/// Numbers of the whole batch: words of one draw, whatever samples_from says.
class batch_numbers {
 public:
  explicit batch_numbers(generator& gen) : key_(draw_key(gen)) {}
  /// In (0, 1).
  double next() {
    const philox_block b = philox4x32(key_, number_++);
    return (static_cast<double>((std::uint64_t{b.word[1]} << 32 | b.word[0]) >> 11) + 0.5) * 0x1p-53;
  }

 private:
  random_key key_;
  std::uint64_t number_ = 0;
};

}  // namespace detail
}  // namespace sinter

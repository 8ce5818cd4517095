// sinter/ops/pixel_shuffle.hpp: channels moved into blocks of pixels, and back.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

namespace ops {

/// What both take. It is no kernel op: both are views and a copy.
struct pixel_blocks {
  template <class X>
  static constexpr auto mistake() {
    using namespace sinter::detail;
    if constexpr (rank_of<X> < 3 || rank_of<X> > max_rank - 2)
      return sinter::detail::mistake<operands_of_ranks<rank_of<X>>, use_an_operand_of_rank<3, max_rank - 2>>{};
    else return fitting<element_of<X>>{};
  }
};

}  // namespace ops

namespace detail {

/// x seen with two more axes, these in another order, and then in the shape `together`.
template <class V, std::size_t Split, std::size_t Together>
V regrouped(const V& x, const index_t (&split)[Split], const index_t (&order)[Split],
            const index_t (&together)[Together]) {
  return x.reshape(split).permute(order).reshape(together);
}

inline void check_block(const char* op, index_t r) {
  if (r < 1) refuse<value_error>({op, ": the factor is ", r, "; it must be 1 or more"});
}

}  // namespace detail

/// (..., C r r, H, W) => (..., C, H r, W r): element (c r + i) r + j of the channels goes to row i, column j of its
/// pixel's block of r x r, as torch.nn.functional.pixel_shuffle. Any element type, rank 3 to 6; runs at once, the
/// result is row-major. Derivative: pixel_unshuffle of g. W. Shi et al., CVPR (2016). Errors: value_error for a factor
/// below 1, shape_error for channels that r r does not divide.
///
///     tensor larger = pixel_shuffle(conv2d(pictures, filters, {.padding = 1}), 2);
template <class X>
  requires detail::takes_operands<ops::pixel_blocks, X>
detail::evaluated<X> pixel_shuffle(X&& x, detail::whole upscale_factor) {
  constexpr int R = rank_of<X>;
  const index_t r = upscale_factor;
  detail::check_defined("pixel_shuffle", x);
  detail::check_block("pixel_shuffle", r);
  const extents<R> e = x.shape();
  if (e[R - 3] % r != 0 || e[R - 3] / r % r != 0)
    detail::refuse<shape_error>(
        {"pixel_shuffle: blocks of ", r, " x ", r, " do not divide the ", e[R - 3], " channels of shape ", e});
  const index_t channels = e[R - 3] / r / r;
  index_t split[std::size_t{R + 2}], order[std::size_t{R + 2}], together[std::size_t{R}];
  for (int d = 0; d < R - 3; ++d) split[d] = together[d] = e[d], order[d] = d;
  const index_t parts[] = {channels, r, r, e[R - 2], e[R - 1]}, places[] = {R - 3, R, R - 2, R + 1, R - 1};
  for (int k = 0; k < 5; ++k) split[R - 3 + k] = parts[k], order[R - 3 + k] = places[k];
  together[R - 3] = channels;
  together[R - 2] = e[R - 2] * r;
  together[R - 1] = e[R - 1] * r;
  return detail::regrouped(eval(std::forward<X>(x)), split, order, together);
}
SINTER_OPERAND_REJECTIONS(pixel_shuffle, ops::pixel_blocks)

/// (..., C, H r, W r) => (..., C r r, H, W): undoes pixel_shuffle, as torch.nn.functional.pixel_unshuffle. Any element
/// type, rank 3 to 6; runs at once, the result is row-major. Derivative: pixel_shuffle of g. Errors: value_error for a
/// factor below 1, shape_error for an image that blocks of r x r do not fill.
///
///     tensor smaller = pixel_unshuffle(pictures, 2);
template <class X>
  requires detail::takes_operands<ops::pixel_blocks, X>
detail::evaluated<X> pixel_unshuffle(X&& x, detail::whole downscale_factor) {
  constexpr int R = rank_of<X>;
  const index_t r = downscale_factor;
  detail::check_defined("pixel_unshuffle", x);
  detail::check_block("pixel_unshuffle", r);
  const extents<R> e = x.shape();
  if (e[R - 2] % r != 0 || e[R - 1] % r != 0)
    detail::refuse<shape_error>(
        {"pixel_unshuffle: blocks of ", r, " x ", r, " do not divide the last two axes of shape ", e});
  const index_t height = e[R - 2] / r, width = e[R - 1] / r;
  index_t split[std::size_t{R + 2}], order[std::size_t{R + 2}], together[std::size_t{R}];
  for (int d = 0; d < R - 3; ++d) split[d] = together[d] = e[d], order[d] = d;
  const index_t parts[] = {e[R - 3], height, r, width, r}, places[] = {R - 3, R - 1, R + 1, R - 2, R};
  for (int k = 0; k < 5; ++k) split[R - 3 + k] = parts[k], order[R - 3 + k] = places[k];
  together[R - 3] = e[R - 3] * r * r;
  together[R - 2] = height;
  together[R - 1] = width;
  return detail::regrouped(eval(std::forward<X>(x)), split, order, together);
}
SINTER_OPERAND_REJECTIONS(pixel_unshuffle, ops::pixel_blocks)

}  // namespace sinter

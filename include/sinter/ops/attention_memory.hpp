// sinter/ops/attention_memory.hpp: where operands, results and gradients of attention lie, for the kernels of all
// devices.
#pragma once

#include "sinter/ops/attention.hpp"

namespace sinter {
namespace ops {

/// A matrix in memory.
template <class T>
struct matrix_of {
  T* data;
  index_t row, column;  ///< strides

  SINTER_WORD matrix_of from(index_t r, index_t c) const { return {data + r * row + c * column, row, column}; }
  SINTER_WORD matrix_of from_row(index_t r) const { return from(r, 0); }
};

/// An operand or result of attention: (batch, heads, rows, columns), or without heads.
template <class T>
struct heads_of {
  T* data = nullptr;
  index_t batch = 0, head = 0, row = 0, column = 0;  ///< strides

  SINTER_WORD matrix_of<T> of(index_t b, index_t h) const { return {data + b * batch + h * head, row, column}; }
};
template <class T, int R, device D>
heads_of<T> heads_in(const tensor<T, R, D>& x) {
  return {sinter::detail::access::data(x), x.strides()[0], R == 4 ? x.strides()[1] : 0, x.strides()[R - 2],
          x.strides()[R - 1]};
}
template <class T, int R, device D>
heads_of<const T> const_heads_in(const tensor<T, R, D>& x) {
  const auto [data, batch, head, row, column] = heads_in(x);
  return {data, batch, head, row, column};
}

/// Where a gradient goes. Without `data` nobody asks for it.
template <class T>
struct gradient_of {
  heads_of<T> to = {};
  bool add = false;
  SINTER_WORD explicit operator bool() const { return to.data != nullptr; }
};
/// Where that of a mask goes; axes that the mask is broadcast along have the extent 1.
template <class T>
struct mask_gradient_of {
  heads_of<T> to;
  index_t batch, heads, queries, keys;
  bool add;
};

}  // namespace ops

namespace detail {

/// What backward of attention is asked for.
template <ops::attention_mask Mask>
struct attention_gradients {
  template <class Backward>
  static bool wants_mask(const Backward& b) {
    if constexpr (Mask == ops::attention_mask::additive) return b.template wants<3>();
    else return false;
  }
  /// The gradients of scores are made.
  template <class Backward>
  static bool wants_scores(const Backward& b) {
    return b.template wants<0>() || b.template wants<1>() || wants_mask(b);
  }
  /// That of operand I, of elements T.
  template <int I, class T, class Backward>
  static ops::gradient_of<T> gradient(const Backward& b) {
    if (!b.template wants<I>()) return {};
    const auto place = b.template place_of<I>();
    return {ops::heads_in(place.to), place.add};
  }
  /// R: the rank of the queries.
  template <int R, class T, class Backward>
  static ops::mask_gradient_of<T> mask_gradient(const Backward& b) {
    const auto place = b.template place_of<3>();
    const auto& to = place.to;
    constexpr int r = rank_of<decltype(to)>;
    const auto extent = [&](int from_last) { return from_last < r ? to.shape()[r - 1 - from_last] : 1; };
    const auto stride = [&](int from_last) { return from_last < r ? to.strides()[r - 1 - from_last] : 0; };
    return {{access::data(to), stride(R - 1), R == 4 ? stride(2) : 0, stride(1), stride(0)},
            extent(R - 1),
            R == 4 ? extent(2) : 1,
            extent(1),
            extent(0),
            place.add};
  }
};

}  // namespace detail
}  // namespace sinter

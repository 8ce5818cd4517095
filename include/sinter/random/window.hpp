// sinter/random/window.hpp: the numbers of a draw for images, in a window of these images only.
#pragma once

#include "sinter/random/distribution.hpp"

namespace sinter::detail {

/// A window of images: `rows` of `columns` numbers, which stand in planes of height x width from row and column `top`
/// and `left` on.
struct draw_window {
  index_t height, width, top, left, rows, columns;

  /// The number, in the draw for whole images, of element i of the window.
  SINTER_WORD index_t element(index_t i) const {
    const index_t row = i / columns, plane = row / rows;
    return (plane * height + top + row % rows) * width + left + i % columns;
  }
};

namespace kernel {

/// `random` for a window. As there, what is written counts its elements in row-major order.
template <class Numbers>
struct random_in_window {
  using value_type = typename Numbers::value_type;
  using leaf_types = type_list<>;
  using sink_types = type_list<>;
  static constexpr int leaves = 0;
  static constexpr int sinks = 0;
  static constexpr int words = Numbers::words;
  Numbers numbers;
  random_key key;
  draw_window window;

  /// The words of neighbouring elements.
  template <std::size_t N>
  SINTER_WORD void draw(index_t first, std::uint32_t (&to)[N]) const {
    constexpr int count = static_cast<int>(N) / words;
    if (first % window.columns + count <= window.columns) return random_words<words>(key, window.element(first), to);
    for (int i = 0; i < count; ++i) {
      std::uint32_t of_one[std::size_t{words}];
      random_words<words>(key, window.element(first + i), of_one);
      for (int w = 0; w < words; ++w) to[i * words + w] = of_one[w];
    }
  }
  template <int, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope&) const {
    using V = decltype(m.template literal<value_type>({}));
    constexpr int n = math::lanes_v<V>;
    if constexpr (requires { m.template words<words>(); }) {
      return numbers.template make<V, n>(m.template words<words>());
    } else {
      std::uint32_t w[std::size_t{n * words}];
      draw(m.index(), w);
      return numbers.template make<V, n>(w);
    }
  }
};

}  // namespace kernel

/// The whole right side of a statement that writes them.
template <class Numbers, device D>
struct window_expr {
  using value_type = typename Numbers::value_type;
  using device_type = D;
  static constexpr int rank = 4;
  static constexpr int order = 0;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  kernel::random_in_window<Numbers> numbers;
  extents<4> shape_;
  const extents<4>& shape() const { return shape_; }
};

template <class Numbers, device D>
struct lowering<window_expr<Numbers, D>> {
  using node = window_expr<Numbers, D>;
  template <bool>
  static kernel::random_in_window<Numbers> plan(const node& e) {
    return e.numbers;
  }
  template <bool>
  static leaf_ref* list(const node&, leaf_ref* to) {
    return to;
  }
};

/// Numbers of shape (N,C,rows,columns): those that a draw of shape (N,C,height,width) has from row `top` and column
/// `left` on.
template <device D, class Numbers>
auto draw_in_window(const char* op, generator& gen, const Numbers& numbers, const extents<4>& whole,
                    const extents<4>& shape, index_t top, index_t left) {
  const auto to = tensor<typename Numbers::value_type, 4, D>::uninitialized(shape, strides_in(channels_last, shape));
  const random_key key = next_key<D>(op, gen, whole);
  if (to.numel() > 0)
    write(window_expr<Numbers, D>{{numbers, key, {whole[2], whole[3], top, left, shape[2], shape[3]}}, shape}, to);
  return to;
}

}  // namespace sinter::detail

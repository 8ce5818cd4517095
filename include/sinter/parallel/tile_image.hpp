// sinter/parallel/tile_image.hpp: an image over tiles, what a tile reads of the others, and the gradients it hands
// back.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/tile_geometry.hpp"

namespace sinter {

// Names in messages.
template <int Rows, int Columns, int Devices>
struct grid_needs_one_device_per_tile;
template <int Devices>
struct list_this_many_devices;

namespace nn {

/// A grid of Rows x Columns tiles, each on a device of its own: row by row.
///
///     using grid = nn::tiles<2, 2, numa<0>, numa<1>, numa<2>, numa<3>>;
template <int Rows, int Columns, device... D>
struct tiles {};

namespace detail {

using sinter::detail::access;

template <class Grid>
inline constexpr int tiles_in = 0;
template <int R, int C, class... D>
inline constexpr int tiles_in<tiles<R, C, D...>> = sizeof...(D);

/// The exchange between tiles. Tests put others in its place.
struct exchange_halos {
  static constexpr bool fetches = true;  ///< a tile reads elements that others own
  static constexpr bool returns = true;  ///< and their owners get the gradients
};

/// What one tile holds.
template <class T, device D>
struct tile {
  using device_type = D;
  tensor<T, 4, D> value;
  tensor<T, 4, D> grad;    ///< of the pass that runs; undefined: zero
  bool is_shared = false;  ///< the gradient's memory is not this tile's alone

  void drop_gradient() {
    grad = {};
    is_shared = false;
  }
  /// Adds a gradient of the whole tile, which may stay somebody else's too.
  void add(const tensor<T, 4, D>& g, bool shared) {
    if (!grad.defined()) {
      grad = g;
      is_shared = shared;
      return;
    }
    own();
    grad += g;
  }
  /// Memory of the gradient that may be written to.
  void own() {
    if (is_shared) grad = grad.clone();
    is_shared = false;
  }
};

template <class T, class Grid>
struct tiled_image;
/// An image (N,C,H,W), cut into tiles.
template <class T, int Rows, int Columns, device... D>
struct tiled_image<T, tiles<Rows, Columns, D...>> {
  static constexpr int count = sizeof...(D);
  using value_type = T;
  template <std::size_t I>
  using device_at = sinter::detail::type_of_part<I, D...>;

  extents<4> shape;
  bool has_graph = false;  ///< are gradients asked for?
  sinter::detail::parts<tile<T, D>...> each;

  explicit tiled_image(const extents<4>& s) : shape(s) {}
  tile_area whole() const { return {{0, shape[2]}, {0, shape[3]}}; }
  tile_area area(int part) const {
    return {owned(shape[2], Rows, part / Columns), owned(shape[3], Columns, part % Columns)};
  }
  void drop_gradients() noexcept {
    sinter::detail::each_part<count>([&](auto part) { each.template at<part()>().drop_gradient(); });
  }
};

/// `area` of an image for tile number P: `from` it where it is this tile's own, else a copy with what other tiles own
/// of it, and `outside` around the image.
template <std::size_t P, class Exchange, class Image>
auto fetched(const Image& from, const tile_area& area, double outside) {
  const auto& own = from.each.template at<P>();
  using T = typename Image::value_type;
  using D = device_of<decltype(own)>;
  if (area == from.area(int{P})) return own.value;
  const extents<4> shape{{from.shape[0], from.shape[1], area.rows.size(), area.columns.size()}};
  const auto to =
      tensor<T, 4, D>::uninitialized(shape, sinter::detail::strides_in(memory_format::channels_last, shape));
  const auto fill = [&](const tile_area& part, double value) {
    if (!part.empty()) area_of(to, area, part).in_place() = static_cast<T>(static_cast<compute_type<T>>(value));
  };
  const tile_area inside = common(area, from.whole());
  fill({{area.rows.begin, inside.rows.begin}, area.columns}, outside);
  fill({{inside.rows.end, area.rows.end}, area.columns}, outside);
  fill({inside.rows, {area.columns.begin, inside.columns.begin}}, outside);
  fill({inside.rows, {inside.columns.end, area.columns.end}}, outside);
  sinter::detail::each_part<Image::count>([&](auto owner) {
    const tile_area of_owner = from.area(int{owner()});
    const tile_area strip = common(area, of_owner);
    if (strip.empty()) return;
    if (!Exchange::fetches && owner() != P) return fill(strip, 0);
    const auto& value = from.each.template at<owner()>().value;
    area_of(to, area, strip).in_place() = area_of(value, of_owner, strip).template to<D>();
  });
  return to;
}

/// Adds to the gradient of tile number P what all tiles have found for elements of it: `read` lists the areas that they
/// have fetched, `gradient(part)` gives the gradient of one, undefined for zero. Its own come first, then the others'
/// in their order.
template <std::size_t P, class Exchange, class Image, class F>
void gather_strips(Image& image, const tile_area (&read)[std::size_t{Image::count}], const F& gradient) {
  auto& to = image.each.template at<P>();
  using T = typename Image::value_type;
  using D = device_of<decltype(to)>;
  const tile_area mine = image.area(int{P});
  if (mine.empty()) return;
  const auto add = [&](auto reader) {
    const auto& g = gradient(reader);
    const tile_area& all = read[reader()];
    const tile_area strip = common(all, mine);
    if (!g.defined() || strip.empty()) return;
    if (reader() != P && !Exchange::returns) return;
    if constexpr (std::is_same_v<device_of<decltype(g)>, D>)
      if (all == mine) return to.add(g, false);
    if (!to.grad.defined()) {
      const extents<4> shape{{image.shape[0], image.shape[1], mine.rows.size(), mine.columns.size()}};
      to.grad = tensor<T, 4, D>::uninitialized(shape, sinter::detail::strides_in(memory_format::channels_last, shape));
      if (strip == mine) return void(to.grad.in_place() = area_of(g, all, strip).template to<D>());
      to.grad.in_place() = T(0);
    }
    to.own();
    area_of(to.grad, mine, strip).in_place() += area_of(g, all, strip).template to<D>();
  };
  add(std::integral_constant<std::size_t, P>{});
  sinter::detail::each_part<Image::count>([&](auto reader) {
    if constexpr (reader() != P) add(reader);
  });
}

}  // namespace detail
}  // namespace nn
}  // namespace sinter

// tests/judge/rows_image.cpp: paddings, resized and rearranged images.
#include <cmath>

#include "tables.hpp"

namespace judge {

namespace {

using sinter::interpolation, sinter::pad_mode;

template <class In>
void padded(const In& in, const std::string& mode, const shape& amounts, double value) {
  const std::map<std::string, pad_mode> modes = {{"constant", pad_mode::constant},   {"reflect", pad_mode::reflect},
                                                 {"replicate", pad_mode::replicate}, {"edge", pad_mode::replicate},
                                                 {"circular", pad_mode::circular},   {"wrap", pad_mode::circular}};
  if (!modes.contains(mode)) throw form_not_there{mode};
  by_rank(in, "0",
          [&](auto rank) { in.give(pad(in.template x<decltype(rank)::value>("0"), amounts, modes.at(mode), value)); });
}
/// ONNX: the numbers in front of all axes, or of those listed, and then those behind. Only what is padded is named: the
/// modes other than constant are for the last axes.
template <class In>
void padded_as_in_onnx(const In& in) {
  const shape pads = in.integers("1"), listed = in.integers("3");
  const auto rank = static_cast<std::size_t>(in.rank("0"));
  shape amounts(2 * rank);
  for (std::size_t k = 0; k < pads.size() / 2; ++k) {
    const index_t axis = listed.empty() ? static_cast<index_t>(k) : listed[k];
    const std::size_t from_end =
        axis < 0 ? static_cast<std::size_t>(-axis) - 1 : rank - 1 - static_cast<std::size_t>(axis);
    amounts[2 * from_end] = pads[k];
    amounts[2 * from_end + 1] = pads[k + pads.size() / 2];
  }
  while (amounts.size() > 2 && amounts.back() == 0 && amounts[amounts.size() - 2] == 0)
    amounts.resize(amounts.size() - 2);
  padded(in, in.text("mode", "constant"), amounts, in.number("2", 0));
}
/// What is left over lies behind.
template <class In>
void centred(const In& in) {
  const shape from = in.tensor_of("0").extents, to = in.integers("1"), listed = in.integers("axes");
  shape amounts(2 * from.size());
  for (std::size_t k = 0; k < to.size(); ++k) {
    const auto rank = static_cast<index_t>(from.size()), given = listed.empty() ? static_cast<index_t>(k) : listed[k];
    const auto axis = static_cast<std::size_t>(given < 0 ? given + rank : given);
    const index_t more = to[k] - from[axis];
    amounts[2 * (from.size() - 1 - axis)] = more / 2;
    amounts[2 * (from.size() - 1 - axis) + 1] = more - more / 2;
  }
  padded(in, "constant", amounts, 0);
}

template <class T, class List>
sinter::axis_numbers<T> numbers_of(const List& l) {
  if (l.empty()) return {};
  if (l.size() == 1) return {l[0]};
  if (l.size() == 2) return {l[0], l[1]};
  return {l[0], l[1], l[2]};
}
template <class In>
void resized(const In& in, const std::string& mode, const shape& size, const std::vector<double>& scale,
             sinter::interpolate_options o) {
  const std::map<std::string, interpolation> modes = {{"nearest", interpolation::nearest},
                                                      {"nearest-exact", interpolation::nearest_exact},
                                                      {"linear", interpolation::linear},
                                                      {"bilinear", interpolation::bilinear},
                                                      {"trilinear", interpolation::trilinear},
                                                      {"bicubic", interpolation::bicubic},
                                                      {"area", interpolation::area}};
  if (!modes.contains(mode)) throw form_not_there{mode};
  o.size = numbers_of<index_t>(size);
  o.scale_factor = numbers_of<double>(scale);
  o.mode = modes.at(mode);
  by_rank<3>(in, "0", [&](auto rank) { in.give(interpolate(in.template x<decltype(rank)::value>("0"), o)); });
}
/// A part of each image, from `starts` to `ends` of its axes, resized between its corners: an affine grid. What lies
/// outside is 0.
template <class In>
void cropped_as_in_onnx(const In& in) {
  in.only_text("mode", "linear");
  in.only_text("keep_aspect_ratio_policy", "stretch");
  in.only_flag("antialias", false);
  in.only("extrapolation_value", 0, 0);
  in.absent("2");
  const shape from = in.tensor_of("0").extents, sizes = in.integers("3");
  shape listed = in.integers("axes");
  const std::vector<double> roi = in.reals("1");
  if (from.size() != 4) throw form_not_there{"rank"};
  if (listed.empty()) listed = {0, 1, 2, 3};
  if (listed.size() != sizes.size() || roi.size() != 2 * listed.size()) throw form_not_there{"roi"};
  shape to = from;
  double starts[4] = {}, ends[4] = {1, 1, 1, 1};
  for (std::size_t k = 0; k < listed.size(); ++k) {
    const auto axis = static_cast<std::size_t>(listed[k]);
    to.at(axis) = sizes[k];
    starts[axis] = roi[k];
    ends[axis] = roi[k + listed.size()];
  }
  if (to[0] != from[0] || to[1] != from[1] || starts[0] != 0 || ends[0] != 1 || starts[1] != 0 || ends[1] != 1)
    throw form_not_there{"roi of samples or channels"};
  const auto scale = [&](int d) { return static_cast<float>(ends[d] - starts[d]); };
  const auto shift = [&](int d) { return static_cast<float>(ends[d] + starts[d] - 1); };
  const auto theta =
      sinter::tensor<float, 3>{{{scale(3), 0, shift(3)}, {0, scale(2), shift(2)}}}.broadcast_to({from[0], 2, 3});
  in.give(grid_sample(in.template x<4>("0"), affine_grid(theta, {to[0], to[1], to[2], to[3]}, true),
                      {.align_corners = true}));
}
/// ONNX names the places of elements and the rounding apart.
template <class In>
void resized_as_in_onnx(const In& in) {
  const std::string places = in.text("coordinate_transformation_mode", "half_pixel");
  if (places == "tf_crop_and_resize") return cropped_as_in_onnx(in);
  using sinter::pixel_places, sinter::pixel_rounding;
  const std::map<std::string, pixel_places> all_places = {{"half_pixel", pixel_places::half_pixel},
                                                          {"pytorch_half_pixel", pixel_places::pytorch_half_pixel},
                                                          {"half_pixel_symmetric", pixel_places::half_pixel_symmetric},
                                                          {"asymmetric", pixel_places::asymmetric},
                                                          {"align_corners", pixel_places::align_corners}};
  const std::map<std::string, pixel_rounding> roundings = {{"floor", pixel_rounding::floor},
                                                           {"ceil", pixel_rounding::ceil},
                                                           {"round_prefer_floor", pixel_rounding::prefer_floor},
                                                           {"round_prefer_ceil", pixel_rounding::prefer_ceil}};
  const std::string rounding = in.text("nearest_mode", "round_prefer_floor");
  const std::string mode = in.text("mode", "nearest");
  const std::string policy = in.text("keep_aspect_ratio_policy", "stretch");
  if (!all_places.contains(places) || !roundings.contains(rounding)) throw form_not_there{places + ", " + rounding};
  in.only_flag("antialias", false);  // there ONNX repeats the edges
  sinter::interpolate_options o;
  o.places = all_places.at(places);
  o.nearest_mode = roundings.at(rounding);
  o.exclude_outside = in.flag("exclude_outside", false);
  o.cubic_coeff_a = in.number("cubic_coeff_a", -0.75);
  const shape from = in.tensor_of("0").extents, axes = in.integers("axes");
  shape size = in.integers("3");
  std::vector<double> scale = in.reals("2");
  if (from.size() != 4) throw form_not_there{"rank"};
  if (axes.empty()) {
    if (!size.empty()) size.erase(size.begin(), size.begin() + 2);
    if (!scale.empty()) scale.erase(scale.begin(), scale.begin() + 2);
  } else if (axes != shape{2, 3}) {
    throw form_not_there{"axes"};
  }
  if (policy != "stretch" && size.size() == 2) {  // one scale for both axes
    const double down = static_cast<double>(size[0]) / static_cast<double>(from[2]),
                 across = static_cast<double>(size[1]) / static_cast<double>(from[3]);
    const double both = policy == "not_smaller" ? std::fmax(down, across) : std::fmin(down, across);
    if (both != std::floor(both)) throw form_not_there{policy};
    size.clear();
    scale = {both, both};
  }
  resized(in, mode == "linear" ? "bilinear" : mode == "cubic" ? "bicubic" : mode, size, scale, o);
}

sinter::per_axis<2> pair_of(const shape& s, index_t otherwise) {
  if (s.empty()) return otherwise;
  if (s.size() == 1) return s[0];
  if (s.size() == 2) return {s[0], s[1]};
  throw form_not_there{"more than two axes"};
}

/// Channels of ONNX's blocks are the outer ones where the mode is not CRD.
template <class X>
X blocks_first(const X& x, index_t r, bool first) {
  const auto e = x.shape();
  const index_t rr = r * r, channels = e[1] / rr;
  if (first)
    return x.reshape({e[0], channels, rr, e[2], e[3]}).permute({0, 2, 1, 3, 4}).reshape({e[0], e[1], e[2], e[3]});
  return x.reshape({e[0], rr, channels, e[2], e[3]}).permute({0, 2, 1, 3, 4}).reshape({e[0], e[1], e[2], e[3]});
}

}  // namespace

std::vector<row> image_rows() {
  return {
      on<float>("op:constant_pad_nd",
                [](const auto& in) { padded(in, "constant", in.integers("1 pad"), in.number("2 value", 0)); }),
      on<float>("op:nn.functional.pad.constant op:nn.functional.pad.reflect op:nn.functional.pad.replicate "
                "op:nn.functional.pad.circular",
                [](const auto& in) {
                  padded(in, in.text("2 mode", "constant"), in.integers("1 pad"), in.number("3 value None", 0));
                }),
      on<float, std::int32_t>("onnx:Pad", [](const auto& in) { padded_as_in_onnx(in); }),
      on<float>("onnx:CenterCropPad", [](const auto& in) { centred(in); }),
      on<float>("op:nn.functional.interpolate.nearest op:nn.functional.interpolate.linear "
                "op:nn.functional.interpolate.bilinear op:nn.functional.interpolate.bicubic "
                "op:nn.functional.interpolate.trilinear op:nn.functional.interpolate.area",
                [](const auto& in) {
                  in.only_flag("5 recompute_scale_factor None", false);
                  resized(in, in.text("3 mode", "nearest"), in.integers("1 size None"), in.reals("2 scale_factor None"),
                          {.align_corners = in.flag("4 align_corners None", false),
                           .antialias = in.flag("6 antialias", false)});
                }),
      on<float>("op:nn.functional.upsample_nearest",
                [](const auto& in) {
                  resized(in, "nearest", in.integers("1 size None"), in.reals("2 scale_factor None"), {});
                }),
      on<float>("op:nn.functional.upsample_bilinear",
                [](const auto& in) {
                  resized(in, "bilinear", in.integers("1 size None"), in.reals("2 scale_factor None"),
                          {.align_corners = true});
                }),
      on<float>("onnx:Resize", [](const auto& in) { resized_as_in_onnx(in); }),
      on<float>("onnx:Upsample",
                [](const auto& in) {
                  std::vector<double> scale = in.reals("1");
                  scale.erase(scale.begin(), scale.begin() + 2);
                  resized(in, in.text("mode", "nearest"), {}, scale, {});
                }),
      on<float>("op:nn.functional.unfold",
                [](const auto& in) {
                  in.give(unfold(in.template x<4>("0"), pair_of(in.integers("1 kernel_size"), 1),
                                 {.dilation = pair_of(in.integers("2 dilation"), 1),
                                  .padding = pair_of(in.integers("3 padding"), 0),
                                  .stride = pair_of(in.integers("4 stride"), 1)}));
                }),
      on<float>("onnx:Col2Im",
                [](const auto& in) {
                  shape pads = in.integers("pads");
                  if (pads.size() == 4) {
                    if (pads[0] != pads[2] || pads[1] != pads[3]) throw form_not_there{"pads"};
                    pads.resize(2);
                  }
                  in.give(fold(in.template x<3>("0"), pair_of(in.integers("1"), 1), pair_of(in.integers("2"), 1),
                               {.dilation = pair_of(in.integers("dilations"), 1),
                                .padding = pair_of(pads, 0),
                                .stride = pair_of(in.integers("strides"), 1)}));
                }),
      on<float>(
          "op:nn.functional.pixel_shuffle",
          [](const auto& in) { in.give(pixel_shuffle(in.template x<4>("0"), in.integer("1 upscale_factor", 1))); }),
      on<float>(
          "op:nn.functional.pixel_unshuffle",
          [](const auto& in) { in.give(pixel_unshuffle(in.template x<4>("0"), in.integer("1 downscale_factor", 1))); }),
      on<float>("onnx:DepthToSpace",
                [](const auto& in) {
                  const index_t r = in.integer("blocksize", 1);
                  const auto x = in.template x<4>("0");
                  if (in.text("mode", "DCR") == "CRD") in.give(pixel_shuffle(x, r));
                  else in.give(pixel_shuffle(blocks_first(x, r, false), r));
                }),
      on<float>("onnx:SpaceToDepth",
                [](const auto& in) {
                  const index_t r = in.integer("blocksize", 1);
                  in.give(blocks_first(pixel_unshuffle(in.template x<4>("0"), r), r, true));
                }),
  };
}

}  // namespace judge

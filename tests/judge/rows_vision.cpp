// tests/judge/rows_vision.cpp: images read at the places of a grid and in regions, and boxes.
#include <cmath>

#include "tables.hpp"

namespace judge {

namespace {

using sinter::grid_padding, sinter::interpolation;

template <class In>
sinter::grid_sample_options grid_options(const In& in) {
  const std::map<std::string, interpolation> modes = {{"bilinear", interpolation::bilinear},
                                                      {"linear", interpolation::bilinear},
                                                      {"nearest", interpolation::nearest},
                                                      {"bicubic", interpolation::bicubic},
                                                      {"cubic", interpolation::bicubic}};
  const std::map<std::string, grid_padding> paddings = {
      {"zeros", grid_padding::zeros}, {"border", grid_padding::border}, {"reflection", grid_padding::reflection}};
  const std::string mode = in.text("2 mode", in.onnx() ? "linear" : "bilinear");
  const std::string padding = in.text("3 padding_mode", "zeros");
  if (!modes.contains(mode) || !paddings.contains(padding)) throw form_not_there{mode + ", " + padding};
  return {modes.at(mode), paddings.at(padding), in.flag("4 align_corners None", false)};
}

template <int R, class In>
void give_sampled(const In& in) {
  in.give(grid_sample(in.template x<R>("0 input"), in.template x<R>("1 grid"), grid_options(in)));
}

template <class In>
void give_affine_grid(const In& in) {
  const auto theta = in.template x<3>("0 theta");
  const shape s = in.integers("1 size");
  const bool corners = in.flag("2 align_corners", false);
  if (s.size() == 4) in.give(affine_grid(theta, {s[0], s[1], s[2], s[3]}, corners));
  else if (s.size() == 5) in.give(affine_grid(theta, {s[0], s[1], s[2], s[3], s[4]}, corners));
  else throw form_not_there{"size"};
}

/// ONNX: the images of regions (K,4) apart.
template <class In>
void give_regions(const In& in) {
  in.only_text("mode", "avg");
  const std::string places = in.text("coordinate_transformation_mode", "half_pixel");
  if (places != "half_pixel" && places != "output_half_pixel") throw form_not_there{places};
  const auto boxes = in.template constant<float, 2>("1");
  const auto image = in.template constant<std::int64_t, 1>("2");
  const sinter::roi_align_options o{in.number("spatial_scale", 1), in.integer("sampling_ratio", 0),
                                    places == "half_pixel"};
  in.give(roi_align(in.template x<4>("0"), sinter::concat(1, sinter::cast<float>(image).unsqueeze(1), boxes),
                    {in.integer("output_height", 1), in.integer("output_width", 1)}, o));
}
/// ONNX: boxes (B,N,4) of batches, by two corners in any order, or by middle and size, and scores (B,C,N) of classes;
/// rows of batch, class, box.
template <class In>
void give_suppressed(const In& in) {
  const auto boxes = in.template constant<float, 3>("0"), scores = in.template constant<float, 3>("1");
  const index_t most = in.integer("2 None", 0);
  const double overlap = in.number("3 None", 0), least = in.number("4 None", -INFINITY);
  const auto part = [&](index_t batch, index_t a) { return boxes.select(0, batch).select(1, a); };
  const bool by_middle = in.integer("center_point_box", 0) == 1;
  std::vector<std::int64_t> rows;
  for (index_t b = 0; b < boxes.extent(0); ++b) {
    const auto a = [&](int k) -> sinter::tensor<float, 1> {
      const auto first = part(b, k % 2), second = part(b, k % 2 + 2);
      if (by_middle) return first + (k < 2 ? -0.5F : 0.5F) * second;
      if (k < 2) return minimum(first, second);
      return maximum(first, second);
    };
    const auto corners = sinter::stack(1, a(0), a(1), a(2), a(3));
    for (index_t c = 0; c < scores.extent(1); ++c) {
      index_t count = 0;
      const auto of_class = scores.select(0, b).select(0, c);
      for (const std::int64_t i : nms(corners, of_class, overlap))
        if (static_cast<double>(of_class(i)) > least && count++ < most) rows.insert(rows.end(), {b, c, i});
    }
  }
  in.give(sinter::from_data<std::int64_t>(rows, {static_cast<index_t>(rows.size() / 3), 3}));
}

}  // namespace

std::vector<row> vision_rows() {
  return {
      on<float>("op:nn.functional.grid_sample onnx:GridSample",
                [](const auto& in) {
                  if (in.rank("0 input") == 4) give_sampled<4>(in);
                  else if (in.rank("0 input") == 5) give_sampled<5>(in);
                  else throw form_not_there{"rank"};
                }),
      on<float>("onnx:RoiAlign", [](const auto& in) { give_regions(in); }),
      on<float>("onnx:NonMaxSuppression", [](const auto& in) { give_suppressed(in); }),
      on<float>("onnx:AffineGrid", [](const auto& in) { give_affine_grid(in); }),
  };
}

}  // namespace judge

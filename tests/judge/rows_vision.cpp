// tests/judge/rows_vision.cpp: images read at the places of a grid.
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

}  // namespace

std::vector<row> vision_rows() {
  return {
      on<float>("op:nn.functional.grid_sample onnx:GridSample",
                [](const auto& in) {
                  if (in.rank("0 input") == 4) give_sampled<4>(in);
                  else if (in.rank("0 input") == 5) give_sampled<5>(in);
                  else throw form_not_there{"rank"};
                }),
      on<float>("onnx:AffineGrid", [](const auto& in) { give_affine_grid(in); }),
  };
}

}  // namespace judge

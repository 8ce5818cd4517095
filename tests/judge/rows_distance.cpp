// tests/judge/rows_distance.cpp: norms of any order, and distances.
#include "tables.hpp"

namespace judge {

namespace {

/// The order of a vector's norm: a number, or one of these texts or None, which say 2.
template <class In>
double order_of(const In& in, const char* names) {
  if (!in.is(names, "s")) return in.number(names, 2);
  in.only_text(names, "fro");
  return 2;
}
/// vector_norm of all elements, or along axes.
template <class In>
void vector_norm_by(const In& in, const char* order, const char* axes, const char* keep) {
  const double p = order_of(in, order);
  fold_by(in, axes, keep, [p](const auto& x, const auto&... a) { return sinter::vector_norm(x, p, a...); });
}

/// matrix_norm along two axes, of the orders that are no matter of singular values.
template <class In>
void matrix_norm_by(const In& in, const char* order, const char* axes, const char* keep) {
  const auto x = in.template x<4>("0 input");
  shape both = in.has(axes) ? in.integers(axes) : shape{-2, -1};
  if (both.size() != 2) throw form_not_there{"axes of a matrix"};
  const index_t list[2] = {in.shown_axis(both[0], 4), in.shown_axis(both[1], 4)};
  const bool keeps = in.flag(keep, false);
  const auto with = [&](auto p) {
    if (keeps) in.give(matrix_norm(x, p, list, sinter::keepdim));
    else in.give(matrix_norm(x, p, list));
  };
  if (!in.has(order) || in.is(order, "s")) {
    in.only_text(order, "fro");
    with(sinter::frobenius);
  } else {
    const double p = in.number(order, 2);
    if (std::abs(p) == 2) throw form_not_there{"a norm of singular values"};
    with(p);
  }
}

}  // namespace

std::vector<row> distance_rows() {
  return {
      // The order nuc of a matrix is one of singular values; fro is that of all elements.
      on<float>("op:norm op:norm.inf",
                [](const auto& in) { vector_norm_by(in, "1 p None", "2 dim None", "3 keepdim"); }),
      on<float>("op:linalg.vector_norm",
                [](const auto& in) { vector_norm_by(in, "1 ord", "2 dim None", "3 keepdim"); }),
      // A matrix has other norms here, unless no order is given.
      on<float>("op:linalg.norm",
                [](const auto& in) {
                  const bool matrix = in.has("2 dim None") ? in.integers("2 dim").size() == 2 : in.rank("0") == 2;
                  if (matrix && in.has("1 ord None")) matrix_norm_by(in, "1 ord None", "2 dim None", "3 keepdim");
                  else vector_norm_by(in, "1 ord None", "2 dim None", "3 keepdim");
                }),
      on<float>("op:linalg.matrix_norm", [](const auto& in) { matrix_norm_by(in, "1 ord", "2 dim", "3 keepdim"); }),
      on<float>("op:dist",
                [](const auto& in) {
                  in.give(dist(in.template x<4>("0 input"), in.template x<4>("1 other"), in.number("2 p", 2)));
                }),
      on<float>("op:linalg.vecdot",
                [](const auto& in) {
                  if (in.rank("0") != in.rank("1")) throw form_not_there{"ranks that differ"};
                  in.give(vecdot(in.template x<4>("0"), in.template x<4>("1"), in.axis("2 dim", -1)));
                }),
      on<float>("op:cdist",
                [](const auto& in) {
                  const std::map<std::string, sinter::distance_way> known = {
                      {"use_mm_for_euclid_dist_if_necessary", sinter::distance_way::product_if_large},
                      {"use_mm_for_euclid_dist", sinter::distance_way::product},
                      {"donot_use_mm_for_euclid_dist", sinter::distance_way::differences}};
                  const auto way = known.find(in.text("3 compute_mode None", "use_mm_for_euclid_dist_if_necessary"));
                  if (way == known.end()) throw form_not_there{"compute_mode"};
                  in.give(cdist(in.template x<4>("0"), in.template x<4>("1"),
                                {.p = in.number("2 p", 2), .way = way->second}));
                }),
      on<float>("op:nn.functional.pdist",
                [](const auto& in) { in.give(pdist(in.template x<2>("0 input"), in.number("1 p", 2))); }),
      on<float>("op:nn.functional.pairwise_distance",
                [](const auto& in) {
                  const sinter::pairwise_distance_options o = {.p = in.number("2 p", 2),
                                                               .eps = in.number("3 eps", 1e-6)};
                  const auto a = in.template x<4>("0"), b = in.template x<4>("1");
                  if (in.flag("4 keepdim", false)) in.give(pairwise_distance(a, b, sinter::keepdim, o));
                  else in.give(pairwise_distance(a, b, o));
                }),
      // The axis is one of the operand of more axes.
      on<float>("op:nn.functional.cosine_similarity",
                [](const auto& in) {
                  const int rank = std::max(in.rank("0"), in.rank("1"));
                  const index_t axis = in.integer("2 dim", 1);
                  if (axis < -rank || axis >= rank) throw form_not_there{"the axis"};
                  in.give(cosine_similarity(in.template x<4>("0"), in.template x<4>("1"), axis < 0 ? axis : axis - rank,
                                            in.number("3 eps", 1e-8)));
                }),
      on<float>("op:nn.functional.normalize",
                [](const auto& in) {
                  in.give(normalize(in.template x<4>("0 input"), in.number("1 p", 2), in.axis("2 dim", 1),
                                    in.number("3 eps", 1e-12)));
                }),
      // Of nothing but zeros ONNX makes zeros.
      on<float>("onnx:LpNormalization",
                [](const auto& in) {
                  in.give(normalize(in.template x<4>("0"), in.number("p", 2), in.axis("axis", -1),
                                    std::numeric_limits<float>::min()));
                }),
      on<float>(
          "op:nn.functional.local_response_norm",
          [](const auto& in) {
            by_rank<3>(in, "0 input", [&](auto rank) {
              in.give(local_response_norm(
                  in.template x<decltype(rank)::value>("0 input"), in.integer("1 size", 1),
                  {.alpha = in.number("2 alpha", 1e-4), .beta = in.number("3 beta", 0.75), .k = in.number("4 k", 1)}));
            });
          }),
      // The same where the window has a middle.
      on<float>("onnx:LRN",
                [](const auto& in) {
                  const index_t size = in.integer("size", 1);
                  if (size % 2 == 0) throw form_not_there{"a window without a middle"};
                  in.give(local_response_norm(
                      in.template x<4>("0"), size,
                      {.alpha = in.number("alpha", 1e-4), .beta = in.number("beta", 0.75), .k = in.number("bias", 1)}));
                }),
  };
}

}  // namespace judge

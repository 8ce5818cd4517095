// tests/judge/rows_linalg.cpp: determinants, and norms of singular values.
#include <sinter/linalg.hpp>

#include "tables.hpp"

namespace judge {

namespace {

/// PyTorch's matrix_norm, or its norm of two axes; orders that are not made of singular values have rows elsewhere.
template <class In>
void give_singular_norm(const In& in, const char* order, const char* axes, const char* keep) {
  sinter::singular_norm kind = sinter::singular_norm::nuclear;
  if (in.is(order, "s")) {
    in.only_text(order, "nuc");
  } else {
    const double p = in.number(order, 0);
    if (p != 2 && p != -2) throw form_not_there{"order"};
    kind = p == 2 ? sinter::singular_norm::largest : sinter::singular_norm::smallest;
  }
  const shape a = in.integers(axes);
  if (a.size() != 2) throw form_not_there{"axes"};
  const bool keepdim = in.flag(keep, false);
  by_rank<2>(in, "0", [&](auto rank) {
    const auto x = in.template x<decltype(rank)::value>("0");
    if (keepdim) in.give(matrix_norm(x, kind, {a[0], a[1]}, sinter::keepdim));
    else in.give(matrix_norm(x, kind, {a[0], a[1]}));
  });
}

}  // namespace

std::vector<row> linalg_rows() {
  return {
      on<float>("onnx:Det",
                [](const auto& in) {
                  by_rank<2>(in, "0", [&](auto rank) { in.give(det(in.template x<decltype(rank)::value>("0"))); });
                }),
      on<float>("op:linalg.matrix_norm", [](const auto& in) { give_singular_norm(in, "1 ord", "2 dim", "3 keepdim"); }),
      on<float>("op:linalg.norm", [](const auto& in) { give_singular_norm(in, "1 ord", "2 dim", "3 keepdim"); }),
  };
}

}  // namespace judge

// tests/judge/rows_algebra.cpp: products of matrices and tensors.
#include "tables.hpp"

namespace judge {

namespace {

/// beta x + alpha a b, where a and b have these ranks.
template <int R, int RA, int RB, class F>
row added(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    in.give(F{}(in.template x<R>("0"), in.template x<RA>("1"), in.template x<RB>("2"), in.number("beta", 1),
                in.number("alpha", 1)));
  });
}
#define ADDED(name) [](const auto&... a) { return sinter::name(a...); }

/// The operands of a list as tensors of these ranks.
template <int... R, class In, class F>
void give_listed(const In& in, const std::vector<array>& list, F f) {
  if (list.size() != sizeof...(R)) throw form_not_there{"another number of operands"};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    in.give(f(in.template x<R>(list[I])...));
  }(std::make_index_sequence<sizeof...(R)>());
}

/// Equations are template arguments in the library, so that those of the cases are listed here.
template <class In>
void give_einsum(const In& in) {
  const std::vector<array> list = in.tensors();
  const std::string text = in.text("1 equation", "");
#define EQUATION(of_case, ...) \
  if (text == of_case)         \
    return give_listed<__VA_ARGS__>(in, list, [](const auto&... x) { return sinter::einsum<of_case>(x...); });
  EQUATION("i,j->ij", 1, 1)
  EQUATION("iji->j", 3)
  EQUATION("...ii ->...i", 3)
  EQUATION("->", 0)
  EQUATION("ij->ji", 2)
#undef EQUATION
  throw form_not_there{text};
}

template <int R, class In>
void give_bilinear(const In& in) {
  const auto a = in.template x<R>("0"), b = in.template x<R>("1");
  const auto w = in.template x<3>("2");
  if (in.has("3 None")) in.give(bilinear(a, b, w, in.template x<1>("3 None")));
  else in.give(bilinear(a, b, w));
}

}  // namespace

std::vector<row> algebra_rows() {
  return {
      on<float>("op:outer op:ger",
                [](const auto& in) { in.give(outer(in.template x<1>("0"), in.template x<1>("1"))); }),
      added<2, 2, 2>("op:addmm", ADDED(addmm)),
      added<2, 3, 3>("op:addbmm", ADDED(addbmm)),
      added<3, 3, 3>("op:baddbmm", ADDED(baddbmm)),
      added<1, 2, 1>("op:addmv", ADDED(addmv)),
      added<2, 1, 1>("op:addr", ADDED(addr)),
      // PyTorch's cross without an axis takes the first one of 3 elements.
      on<float>("op:cross",
                [](const auto& in) { in.give(cross(in.template x<4>("0"), in.template x<4>("1"), in.axis("2 dim"))); }),
      on<float>(
          "op:linalg.cross",
          [](const auto& in) { in.give(cross(in.template x<4>("0"), in.template x<4>("1"), in.axis("2 dim", -1))); }),
      on<float>("op:kron", [](const auto& in) { in.give(kron(in.template x<4>("0"), in.template x<4>("1"))); }),
      on<float>("op:tensordot",
                [](const auto& in) {
                  in.only("2 dims", 2, 2);
                  by_rank<2>(in, "0", [&](auto left) {
                    by_rank<2>(in, "1", [&](auto right) {
                      in.give(tensordot<2>(in.template x<decltype(left)::value>("0"),
                                           in.template x<decltype(right)::value>("1")));
                    });
                  });
                }),
      on<float>("op:linalg.multi_dot",
                [](const auto& in) {
                  const std::vector<array> list = in.tensors();
                  const auto product = [](const auto&... x) { return multi_dot(x...); };
                  if (list.size() == 2) give_listed<2, 2>(in, list, product);
                  else give_listed<2, 2, 2, 2, 2>(in, list, product);
                }),
      on<float, double>("op:einsum onnx:Einsum", [](const auto& in) { give_einsum(in); }),
      on<float>("op:nn.functional.bilinear",
                [](const auto& in) { by_rank(in, "0", [&](auto rank) { give_bilinear<decltype(rank)::value>(in); }); }),
  };
}

}  // namespace judge

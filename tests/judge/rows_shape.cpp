// tests/judge/rows_shape.cpp: views, joined tensors and new ones.
#include "tables.hpp"

namespace judge {

namespace {

/// x in a shape of which one extent may be -1; ONNX writes 0 for the extent that x has.
template <class In>
void reshaped(const In& in, shape to) {
  const array x = in.tensor_of("0");
  if (in.onnx() && !in.flag("allowzero", false))
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i] == 0) to[i] = x.extents.at(i);
  const auto e = call::shown<4>(to);
  in.give(in.template x<4>("0").reshape({e[0], e[1], e[2], e[3]}));
}

/// Axis i of the result is axis order[i].
template <class In>
void permuted(const In& in, const shape& order) {
  const auto r = static_cast<index_t>(order.size());
  index_t shown[4] = {0, 1, 2, 3};
  for (index_t i = 0; i < r; ++i) {
    const index_t a = in.shown_axis(order[static_cast<std::size_t>(i)], 4);
    shown[4 - r + i] = a < 0 ? a + 4 : a;
  }
  in.give(in.template x<4>("0").permute(shown));
}

template <class In>
void broadcast(const In& in) {
  const auto x = in.template x<4>("0");
  shape to = in.integers("1 size");
  // -1, and ONNX's 1, keep the extent.
  const auto e = call::shown<4>(to);
  const auto keep = [&](int i) { return e[i] == -1 || (in.onnx() && e[i] == 1) ? x.shape()[i] : e[i]; };
  in.give(x.broadcast_to({keep(0), keep(1), keep(2), keep(3)}));
}

template <bool New>
row joined(const char* names) {
  return on<float>(names, [](const auto& in) {
    const std::vector<array> arrays = in.tensors();
    std::vector<decltype(in.template x<4>(arrays[0]))> parts;
    for (const array& a : arrays) parts.push_back(in.template x<4>(a));
    const auto r = static_cast<index_t>(arrays.at(0).extents.size());
    const index_t axis = in.integer(in.onnx() ? "axis" : "1 dim", 0);
    const index_t from_end = axis < 0 ? axis : axis - r - New;
    if constexpr (New) in.give(sinter::stack(from_end, parts));
    else in.give(sinter::concat(from_end, parts));
  });
}

/// How often, or how far, for each of the last axes; 1s, or 0s, for those in front.
inline void of_all_axes(index_t (&all)[4], const shape& last, index_t otherwise) {
  if (last.size() > 4) throw form_not_there{"rank " + std::to_string(last.size())};
  for (std::size_t i = 0; i < 4; ++i) all[i] = i < 4 - last.size() ? otherwise : last[i - (4 - last.size())];
}

/// A new tensor of the element type that the case names.
template <class F>
void of_dtype(const call& in, const std::string& otherwise, F f) {
  const std::string dtype = in.dtype("dtype None", otherwise);
  if (dtype == "float32") in.give(f(float()));
  else if (dtype == "float64") in.give(f(double()));
  else if (dtype == "int64") in.give(f(std::int64_t()));
  else throw form_not_there{dtype};
}

}  // namespace

std::vector<row> shape_rows() {
  return {
      on<float>("op:reshape op:view onnx:Reshape",
                [](const auto& in) {
                  const shape to = in.integers("1 shape");
                  reshaped(in, to);
                }),
      on<float>("op:reshape_as op:view_as", [](const auto& in) { reshaped(in, in.tensor_of("1").extents); }),
      on<float>("op:flatten", [](const auto& in) { in.give(in.template x<4>("0").flatten()); }),
      on<float>("op:permute", [](const auto& in) { permuted(in, in.integers("1 dims")); }),
      on<float>("onnx:Transpose",
                [](const auto& in) {
                  shape order = in.integers("perm");
                  for (index_t a = in.rank("0"); !in.has("perm") && a-- > 0;) order.push_back(a);
                  permuted(in, order);
                }),
      on<float>("op:transpose",
                [](const auto& in) { in.give(in.template x<4>("0").transpose(in.axis("1 dim0"), in.axis("2 dim1"))); }),
      on<float>("op:t",
                [](const auto& in) {
                  if (in.rank("0") != 2) throw form_not_there{"rank"};
                  in.give(in.template x<2>("0").transpose());
                }),
      on<float>("op:squeeze", [](const auto& in) { in.give(in.template x<4>("0").squeeze(in.axis("1 dim"))); }),
      on<float>("op:unsqueeze onnx:Unsqueeze",
                [](const auto& in) {
                  const shape axes = in.integers("1 axes");
                  if (axes.size() != 1) throw form_not_there{"more than one axis"};
                  in.give(in.template x<4>("0").unsqueeze(axes[0] < 0 ? axes[0] : axes[0] - in.rank("0") - 1));
                }),
      on<float>("op:broadcast_to op:expand onnx:Expand", [](const auto& in) { broadcast(in); }),
      on<float>("op:flip",
                [](const auto& in) {
                  auto x = in.template x<4>("0");
                  for (index_t a : in.integers("1 dims")) x = x.flip(in.shown_axis(a, 4));
                  in.give(x);
                }),
      on<float>(
          "op:select",
          [](const auto& in) { in.give(in.template x<4>("0").select(in.axis("1 dim"), in.integer("2 index", 0))); }),
      on<float>("op:slice",
                [](const auto& in) {
                  in.give(in.template x<4>("0").slice(in.axis("dim", 0), in.integer("start", 0), in.integer("end", 0),
                                                      in.integer("step", 1)));
                }),
      on<float>("onnx:Slice",
                [](const auto& in) {
                  auto x = in.template x<4>("0");
                  const shape begin = in.integers("1"), end = in.integers("2"), axes = in.integers("3"),
                              step = in.integers("4");
                  for (std::size_t i = 0; i < begin.size(); ++i)
                    x = x.slice(in.shown_axis(axes.empty() ? static_cast<index_t>(i) : axes[i], 4), begin[i], end[i],
                                step.empty() ? 1 : step[i]);
                  in.give(x);
                }),
      joined<false>("op:cat onnx:Concat"),
      joined<true>("op:stack"),
      on<float>("op:chunk",
                [](const auto& in) {
                  each(in, sinter::chunk(in.template x<4>("0"), in.integer("1 chunks", 1), in.axis("2 dim", 0)));
                }),
      on<float>("op:tensor_split",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  if (in.is("1 indices_or_sections sections indices", "i"))
                    each(in, sinter::tensor_split(x, in.integer("1 indices_or_sections sections indices", 1),
                                                  in.axis("2 dim", 0)));
                  else
                    each(in, sinter::tensor_split(x, in.integers("1 indices_or_sections sections indices"),
                                                  in.axis("2 dim", 0)));
                }),
      on<float>("op:unbind",
                [](const auto& in) { each(in, sinter::unbind(in.template x<4>("0"), in.axis("1 dim", 0))); }),
      on<float>("op:repeat op:tile onnx:Tile",
                [](const auto& in) {
                  index_t times[4];
                  of_all_axes(times, in.integers("1 dims repeats"), 1);
                  in.give(sinter::tile(in.template x<4>("0"), times));
                }),
      on<float>("op:roll",
                [](const auto& in) {
                  auto x = in.template x<4>("0");
                  const shape by = in.integers("1 shifts"), axes = in.integers("2 dims");
                  if (axes.empty() && by.size() == 1) return in.give(sinter::roll(x, by[0]));
                  if (axes.size() != by.size()) throw form_not_there{"another number of axes"};
                  for (std::size_t i = 0; i < by.size(); ++i) x = sinter::roll(x, by[i], in.shown_axis(axes[i], 4));
                  in.give(x);
                }),
      made("op:arange",
           [](const call& in) {
             const bool reals = in.is("0", "f") || in.is("1 end", "f") || in.is("2 step", "f");
             of_dtype(in, reals ? "float32" : "int64", [&](auto type) {
               using T = decltype(type);
               if (!in.has("1 end")) return sinter::arange<T>(in.number("0", 0));
               return sinter::arange<T>(in.number("0", 0), in.number("1 end", 0), in.number("2 step", 1));
             });
           }),
      made("op:eye",
           [](const call& in) {
             const index_t n = in.integer("0", 0), m = in.integer("1 m", n);
             of_dtype(in, "float32", [&](auto type) { return sinter::eye<decltype(type)>(n, m); });
           }),
      on<float>("op:diagonal",
                [](const auto& in) {
                  in.give(sinter::diagonal(in.template x<4>("0"), in.integer("1 offset", 0), in.axis("2 dim1", 0),
                                           in.axis("3 dim2", 1)));
                }),
      on<float>("op:diag",
                [](const auto& in) {
                  if (in.rank("0") == 1) in.give(sinter::diag(in.template x<1>("0"), in.integer("1 diagonal", 0)));
                  else in.give(sinter::diag(in.template x<2>("0"), in.integer("1 diagonal", 0)));
                }),
      on<float>("op:trace", [](const auto& in) { in.give(sinter::trace(in.template x<2>("0"))); }),
      on<float>("op:tril",
                [](const auto& in) { in.give(sinter::tril(in.template x<4>("0"), in.integer("1 diagonal", 0))); }),
      on<float>("op:triu",
                [](const auto& in) { in.give(sinter::triu(in.template x<4>("0"), in.integer("1 diagonal", 0))); }),
      on<float, std::int64_t>("onnx:Trilu",
                              [](const auto& in) {
                                const auto x = in.template x<4>("0");
                                const index_t k = in.integer("1", 0);
                                if (in.flag("upper", true)) in.give(sinter::triu(x, k));
                                else in.give(sinter::tril(x, k));
                              }),
      made("op:linspace",
           [](const call& in) {
             of_dtype(in, "float32", [&](auto type) {
               return sinter::linspace<decltype(type)>(in.number("0 start", 0), in.number("1 end", 0),
                                                       in.integer("2 steps", 0));
             });
           }),
      made("op:logspace",
           [](const call& in) {
             of_dtype(in, "float32", [&](auto type) {
               return sinter::logspace<decltype(type)>(in.number("0 start", 0), in.number("1 end", 0),
                                                       in.integer("2 steps", 0), in.number("3 base", 10));
             });
           }),
      made("op:zeros",
           [](const call& in) {
             of_dtype(in, "float32",
                      [&](auto type) { return sinter::zeros<decltype(type)>(call::shown<4>(in.integers("0"))); });
           }),
      made("op:ones",
           [](const call& in) {
             of_dtype(in, "float32",
                      [&](auto type) { return sinter::ones<decltype(type)>(call::shown<4>(in.integers("0"))); });
           }),
      made("op:zeros_like",
           [](const call& in) {
             of_dtype(in, in.tensor_of("0").dtype, [&](auto type) {
               return sinter::zeros<decltype(type)>(call::shown<4>(in.tensor_of("0").extents));
             });
           }),
      made("op:ones_like",
           [](const call& in) {
             of_dtype(in, in.tensor_of("0").dtype, [&](auto type) {
               return sinter::ones<decltype(type)>(call::shown<4>(in.tensor_of("0").extents));
             });
           }),
      made("op:full_like",
           [](const call& in) {
             of_dtype(in, in.tensor_of("0").dtype, [&](auto type) {
               return sinter::full<decltype(type)>(call::shown<4>(in.tensor_of("0").extents), in.number("1", 0));
             });
           }),
  };
}

}  // namespace judge

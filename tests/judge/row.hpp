// tests/judge/row.hpp: what a row of the judge's tables is, and the usual kinds of rows.
//
// A row names the op in the sets of cases, separated by blanks: op: in torch_ops, nn: in torch_modules, onnx: in
// onnx_node. Then follows what it is in the library, a lambda. It says which arguments there are by reading them: a
// case with one that was not read counts as a form that is not there. Numbers of arguments are those of the op's
// signature, so rows of several ops share only those that stand in the same place.
//
//   on<float>("op:nn.functional.conv2d onnx:Conv", [](const auto& in) {
//     in.give(conv2d(in.template x<4>("0 input"), in.template x<4>("1 weight"), in.integer("stride strides", 1))); }),
#pragma once

#include "call.hpp"

namespace judge {

struct row {
  std::string names;
  struct typed {
    std::string dtype;  ///< of the operands
    void (*work)(run&);
  };
  std::vector<typed> types;
  /// Each element of the result depends on few elements, so that its error is held against that element alone.
  bool elementwise = false;
};

/// A row whose lambda takes operands<T>, for each T.
template <class... T, class F>
row on(const char* names, F) {
  return {names, {{dtype_of<T>(), [](run& r) { F{}(operands<T>(r)); }}...}};
}

/// A row that makes tensors from nothing but numbers; its lambda takes a call.
template <class F>
row made(const char* names, F) {
  return {names, {{"", [](run& r) {
                     const call in(r);
                     in.only_text("device", "cpu");
                     in.flag("requires_grad", false);  // no result depends on it
                     F{}(in);
                   }}}};
}

// The formula of a row, in x, y, z and the call `in`.
#define OF_X(...) [](const auto& x, [[maybe_unused]] const auto& in) { return __VA_ARGS__; }
#define OF_XY(...) [](const auto& x, const auto& y, [[maybe_unused]] const auto& in) { return __VA_ARGS__; }
#define OF_XYZ(...) \
  [](const auto& x, const auto& y, const auto& z, [[maybe_unused]] const auto& in) { return __VA_ARGS__; }

template <class... T, class F>
row unary(const char* names, F) {
  row r = on<T...>(names, [](const auto& in) { in.give_like("0 input", F{}(in.flat_x("0 input"), in)); });
  r.elementwise = true;
  return r;
}
template <class... T, class F>
row binary(const char* names, F) {
  row r = on<T...>(names, [](const auto& in) { in.give(F{}(in.template x<4>("0"), in.template x<4>("1"), in)); });
  r.elementwise = true;
  return r;
}
template <class... T, class F>
row ternary(const char* names, F) {
  row r = on<T...>(names, [](const auto& in) {
    in.give(F{}(in.template x<4>("0"), in.template x<4>("1"), in.template x<4>("2"), in));
  });
  r.elementwise = true;
  return r;
}

/// f(x, axis), such as a softmax or a scan. PyTorch wants an axis (None is one of its own choice), ONNX has the last.
template <class... T, class F>
row along(const char* names, F) {
  return on<T...>(names, [](const auto& in) {
    const char* axis = "1 dim axis";
    in.give(F{}(in.template x<4>("0"), in.onnx() ? in.axis(axis, -1) : in.axis(axis)));
  });
}

/// Several results, one for each part.
template <class In, class Parts>
void each(const In& in, const Parts& parts) {
  for (const auto& part : parts) in.give(part);
}

/// f of the rank of an argument, from Least to Most, as a type.
template <int Least = 1, int Most = 5, class In, class F>
void by_rank(const In& in, const char* names, F f) {
  const int rank = in.rank(names);
  if (rank == Least) f(std::integral_constant<int, Least>());
  else if constexpr (Least < Most) by_rank<Least + 1, Most>(in, names, f);
  else throw form_not_there{"rank " + std::to_string(rank)};
}

/// f(x, axis), of a scalar as such.
template <class In, class F>
void with_axis(const In& in, const char* axis, index_t otherwise, F f) {
  if (in.rank("0 input") == 0) f(in.template x<0>("0 input"), in.integer(axis, otherwise));
  else f(in.template x<4>("0 input"), in.axis(axis, otherwise));
}

/// f(x), f(x, axis), f(x, {axis, axis}), the last two with keepdim as well. Axes and keepdim have these names.
template <class T, class F>
void fold_by(const operands<T>& in, const char* axes_names, const char* keep_names, F f) {
  in.only_dtype("dtype None", "float32");
  shape axes = in.integers(axes_names);
  if (in.flag("noop_with_empty_axes", false) && axes.empty()) throw form_not_there{"no axes for none"};
  const bool keep = in.flag(keep_names, in.onnx());
  if (axes.size() == 1 && in.rank("0 input") == 0) {
    const auto x = in.template x<0>("0 input");
    return in.give(f(x, axes[0]));
  }
  const auto x = in.template x<4>("0 input");
  for (index_t& a : axes) a = in.shown_axis(a, 4);
  if (axes.empty() || axes.size() > 2) {
    if (!axes.empty() && static_cast<int>(axes.size()) != in.rank("0 input"))
      throw form_not_there{"more than two axes"};
    in.give(f(x));
  } else if (axes.size() == 2) {
    const index_t list[2] = {axes[0], axes[1]};
    if (keep) in.give(f(x, list, sinter::keepdim));
    else in.give(f(x, list));
  } else if (keep) {
    in.give(f(x, axes[0], sinter::keepdim));
  } else {
    in.give(f(x, axes[0]));
  }
}
/// f(x, dim, keepdim).
template <class... T, class F>
row fold(const char* names, F) {
  return on<T...>(names, [](const auto& in) { fold_by(in, "1 dim axes axis None", "2 keepdim keepdims", F{}); });
}
/// The name of a reduction as something to call.
#define REDUCTION(name) [](const auto&... a) { return sinter::name(a...); }

}  // namespace judge

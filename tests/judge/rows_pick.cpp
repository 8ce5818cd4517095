// tests/judge/rows_pick.cpp: elements found by value or by a mask, read and written at coordinates, and parts replaced.
#include "tables.hpp"

namespace judge {

namespace {

using i64 = std::int64_t;
using ids = sinter::tensor<i64, 1>;

/// What stands between the brackets of x[...] for one axis: a number, a list of them, or {"slice": [begin, end, step]}.
struct axis_index {
  char kind;
  shape numbers;
};

/// The integers between the brackets of a list; `otherwise` for null.
shape listed(const std::string& text, const shape& otherwise) {
  shape s;
  for (const std::string& one : split(text.substr(1, text.size() - 2), ',')) {
    if (one == "null" && s.size() < otherwise.size()) {
      s.push_back(otherwise[s.size()]);
      continue;
    }
    if (one.empty() || one.find_first_not_of("-0123456789") != std::string::npos) throw form_not_there{"index " + one};
    s.push_back(std::stoll(one));
  }
  return s;
}

/// Those of all axes of x, from JSON.
std::vector<axis_index> axis_indices(std::string json, const shape& x) {
  std::erase(json, ' ');
  std::vector<std::string> parts;
  int depth = 0;
  for (const char c : json) {
    if (c == ']' || c == '}') --depth;
    if (depth > 0) {
      if (parts.empty() || (c == ',' && depth == 1)) parts.emplace_back();
      if (c != ',' || depth > 1) parts.back() += c;
    }
    if (c == '[' || c == '{') ++depth;
  }
  std::vector<axis_index> all;
  const std::string slice = "{\"slice\":";
  for (const std::string& part : parts) {
    if (all.size() == x.size()) throw form_not_there{"an index for more axes than there are"};
    if (part.starts_with(slice))
      all.push_back({':', listed(part.substr(slice.size(), part.size() - slice.size() - 1), {0, x[all.size()], 1})});
    else if (part.starts_with('[')) all.push_back({'l', listed(part, {})});
    else all.push_back({'i', listed("[" + part + "]", {})});
  }
  return all;
}

/// Gives x with numbers and slices of its first axes.
template <class In, class X>
void give_sliced(const In& in, const X& x, std::vector<axis_index> axes) {
  if (axes.empty()) return in.give(x);
  const axis_index last = axes.back();
  const auto axis = static_cast<index_t>(axes.size()) - 1;
  axes.pop_back();
  if (last.kind == ':')
    return give_sliced(in, x.slice(axis, last.numbers.at(0), last.numbers.at(1), last.numbers.at(2)), axes);
  if (last.kind != 'i') throw form_not_there{"a list beside numbers or parts of axes"};
  if constexpr (sinter::rank_of<X> > 0) give_sliced(in, x.select(axis, last.numbers.at(0)), axes);
}
ids index_of(const axis_index& axis) {
  return sinter::from_data<i64>(axis.numbers, {static_cast<index_t>(axis.numbers.size())});
}
template <class In, class X>
void give_item(const In& in, const X& x, std::vector<axis_index> axes) {
  while (!axes.empty() && axes.back().kind == ':' &&
         axes.back().numbers == shape{0, x.shape()[int(axes.size()) - 1], 1})
    axes.pop_back();
  for (const axis_index& axis : axes)
    if (axis.kind != 'l') return give_sliced(in, x, axes);
  constexpr int R = sinter::rank_of<X>;
  if (axes.size() == 1) return in.give(index_get(x, {index_of(axes[0])}));
  if constexpr (R >= 2)
    if (axes.size() == 2) return in.give(index_get(x, {index_of(axes[0]), index_of(axes[1])}));
  if constexpr (R >= 3)
    if (axes.size() == 3) return in.give(index_get(x, {index_of(axes[0]), index_of(axes[1]), index_of(axes[2])}));
  throw form_not_there{"lists for more axes"};
}

/// Gives x at a mask of its first axes.
template <class In, class X>
void give_masked(const In& in, const X& x) {
  by_rank(in, "1", [&](auto rank) {
    constexpr int N = decltype(rank)::value;
    if constexpr (N <= sinter::rank_of<X>) in.give(index_get(x, in.template constant<bool, N>("1")));
    else throw form_not_there{"a mask of more axes"};
  });
}

/// f(x, {index, ...}) of the coordinates that the last axis of ONNX's indices holds, each with the other axes of the
/// indices, shown as `Axes` of them.
template <int Axes, class In, class F>
void by_coordinates(const In& in, const F& f) {
  in.only("batch_dims", 0, 0);
  const array given = in.tensor_of("1");
  const index_t n = given.extents.empty() ? 0 : given.extents.back();
  const auto all = in.template constant<i64, Axes + 1>(given);
  by_rank(in, "0", [&](auto rank) {
    constexpr int R = decltype(rank)::value;
    if constexpr (R <= 3) {
      const auto x = in.template x<R>("0");
      const auto column = [&](index_t k) { return all.select(-1, k); };
      using index = decltype(column(0));
      if (n == 1) {
        const index one[] = {column(0)};
        return f(x, one);
      }
      if constexpr (R >= 2) {
        const index two[] = {column(0), column(n > 1 ? 1 : 0)};
        if (n == 2) return f(x, two);
      }
      if constexpr (R >= 3) {
        const index three[] = {column(0), column(n > 1 ? 1 : 0), column(n > 2 ? 2 : 0)};
        if (n == 3) return f(x, three);
      }
    }
    throw form_not_there{"more axes or coordinates"};
  });
}

template <class In>
bool searches_right(const In& in) {
  const std::string side = in.text("side None", "left");
  if (side != "left" && side != "right") throw form_not_there{"side " + side};
  return in.flag("right", side == "right");
}
/// Places are int64 or, where the case asks for them, int32.
template <class In, class E>
void give_places(const In& in, const E& places) {
  if (in.flag("out_int32", false)) in.give(sinter::cast<std::int32_t>(places));
  else in.give(places);
}

}  // namespace

std::vector<row> pick_rows() {
  return {
      on<float>("op:searchsorted",
                [](const auto& in) {
                  const auto values = in.template constant<float, 4>("1");
                  const bool right = searches_right(in);
                  const auto search = [&](const auto& sorted, auto places) {
                    constexpr int R = sinter::rank_of<decltype(sorted)>;
                    if (in.has("sorter None"))
                      places(searchsorted(sorted, values, in.template constant<i64, R>("sorter"), right));
                    else places(searchsorted(sorted, values, right));
                  };
                  const auto give = [&](const auto& places) { give_places(in, places); };
                  if (in.rank("0") == 1) search(in.template constant<float, 1>("0"), give);
                  else search(in.template constant<float, 4>("0"), give);
                }),
      on<float>("op:bucketize",
                [](const auto& in) {
                  give_places(in, bucketize(in.template constant<float, 4>("0"), in.template constant<float, 1>("1"),
                                            in.flag("right", false)));
                }),
      on<float, bool, i64>("op:nonzero op:argwhere onnx:NonZero",
                           [](const auto& in) {
                             using T = typename std::remove_cvref_t<decltype(in)>::element;
                             by_rank<0>(in, "0", [&](auto rank) {
                               const auto found = nonzero(in.template constant<T, decltype(rank)::value>("0"));
                               if (in.onnx()) in.give(found.transpose());
                               else if (!in.flag("as_tuple", false)) in.give(found);
                               else
                                 for (const auto& column : unbind(found, 1)) in.give(column);
                             });
                           }),
      on<float>(
          "op:masked_select",
          [](const auto& in) { in.give(masked_select(in.template x<4>("0"), in.template constant<bool, 4>("1"))); }),
      on<float>("op:masked_scatter",
                [](const auto& in) {
                  in.give(
                      masked_scatter(in.template x<4>("0"), in.template constant<bool, 4>("1"), in.template x<4>("2")));
                }),
      on<float>("onnx:Compress",
                [](const auto& in) {
                  const auto mask = in.template constant<bool, 1>("1");
                  if (in.has("axis")) in.give(masked_select(in.template x<4>("0"), in.axis("axis", 0), mask));
                  else in.give(masked_select(in.flat_x("0"), 0, mask));
                }),
      on<float>("op:take",
                [](const auto& in) { in.give(take(in.template x<4>("0"), in.template constant<i64, 4>("1"))); }),
      on<float>("op:take_along_dim",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const auto index = in.template constant<i64, 4>("1");
                  if (in.has("2 dim None")) in.give(take_along_dim(x, in.axis("2 dim"), index));
                  else in.give(take_along_dim(x, index));
                }),
      on<float, i64>("onnx:GatherElements",
                     [](const auto& in) {
                       in.give(take_along_dim(in.template x<4>("0"), in.axis("axis", 0),
                                              in.template constant<i64, 4>("1")));
                     }),
      on<float, std::int32_t>("onnx:GatherND",
                              [](const auto& in) {
                                by_coordinates<2>(
                                    in, [&](const auto& x, const auto& indices) { in.give(index_get(x, indices)); });
                              }),
      on<float>("onnx:ScatterND",
                [](const auto& in) {
                  const std::string how = in.text("reduction", "none");
                  by_coordinates<2>(in, [&](const auto& x, const auto& indices) {
                    constexpr int N = static_cast<int>(std::extent_v<std::remove_cvref_t<decltype(indices)>>);
                    const auto values = in.template x<2 + sinter::rank_of<decltype(x)> - N>("2");
                    if (how == "none") in.give(index_put(x, indices, values));
                    else if (how == "add") in.give(index_put(x, indices, values, sinter::reduction::sum));
                    else if (how == "mul") in.give(index_put(x, indices, values, sinter::reduction::prod));
                    else if (how == "max") in.give(index_put(x, indices, values, sinter::reduction::max));
                    else if (how == "min") in.give(index_put(x, indices, values, sinter::reduction::min));
                    else throw form_not_there{"reduction " + how};
                  });
                }),
      on<float>("op:index_put",
                [](const auto& in) {
                  const auto x = in.template x<2>("0");
                  const std::vector<array> given = in.tensors("1");
                  const auto values = in.template x<2>("2");
                  const bool add = in.flag("3 accumulate", false);
                  const auto put = [&](const auto& indices) {
                    if (add) in.give(index_put(x, indices, values, sinter::reduction::sum));
                    else in.give(index_put(x, indices, values));
                  };
                  if (given.size() != 1) throw form_not_there{"indices of more axes"};
                  const ids one[] = {in.template constant<i64, 1>(given[0])};
                  put(one);
                }),
      // x[i], x[indices] and lists, numbers and parts of axes
      on<float>("op:__getitem__",
                [](const auto& in) {
                  by_rank(in, "0", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    const shape extents(x.shape().begin(), x.shape().end());
                    if (in.is("1", "i")) in.give(x.select(0, in.integer("1", 0)));
                    else if (in.is("1", "j")) give_item(in, x, axis_indices(in.json("1"), extents));
                    else if (in.is("1", "T") && in.tensor_of("1").dtype == "bool") give_masked(in, x);
                    else give_item(in, x, {{'l', in.integers("1")}});
                  });
                }),
      on<float>("op:unfold",
                [](const auto& in) {
                  in.give(unfold(in.template x<4>("0"), in.axis("1"), in.integer("2", 0), in.integer("3", 0)));
                }),
      on<float>("op:slice_scatter",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const index_t axis = in.axis("2 dim", 0), n = x.shape()[static_cast<int>(axis < 0 ? axis + 4 : axis)];
                  const auto limited = [&](index_t i) { return i < -n ? 0 : i > n ? n : i; };
                  in.give(slice_scatter(x, in.template x<4>("1"), axis, limited(in.integer("3 start None", 0)),
                                        limited(in.integer("4 end None", n)), in.integer("5 step", 1)));
                }),
      on<float>("op:select_scatter",
                [](const auto& in) {
                  by_rank(in, "0", [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    in.give(select_scatter(in.template x<R>("0"), in.template x<R - 1>("1"), in.integer("2", 0),
                                           in.integer("3", 0)));
                  });
                }),
      on<float>("op:diagonal_scatter",
                [](const auto& in) {
                  by_rank<2>(in, "0", [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    in.give(diagonal_scatter(in.template x<R>("0"), in.template x<R - 1>("1"),
                                             in.integer("2 offset", 0), in.integer("3 dim1", 0),
                                             in.integer("4 dim2", 1)));
                  });
                }),
      on<i64>(
          "op:nn.functional.one_hot",
          [](const auto& in) { in.give(one_hot(in.template constant<i64, 3>("0"), in.integer("1 num_classes", -1))); }),
      on<float>("op:isin",
                [](const auto& in) {
                  in.flag("assume_unique", false);  // the result is the same
                  const auto found = isin(in.template constant<float, 4>("0"), in.template constant<float, 4>("1"));
                  if (in.flag("invert", false)) in.give(!found);
                  else in.give(found);
                }),
  };
}

}  // namespace judge

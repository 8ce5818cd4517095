// tests/judge/rows_layout.cpp: tensors that are laid out otherwise, joined and parted, and ONNX' shapes and sums.
#include "tables.hpp"

namespace judge {

namespace {

/// The arguments 0, 1, ... or those of the list in their place.
template <class In>
std::vector<array> all_tensors(const In& in) {
  if (in.onnx() || in.is("0 tensors", "Ts")) return in.tensors();
  std::vector<array> list;
  for (int i = 0; in.has(std::to_string(i).c_str()); ++i) list.push_back(in.tensor_of(std::to_string(i).c_str()));
  return list;
}

/// f of a number from Least to Most, as a type.
template <int Least, int Most, class F>
void by_number(index_t n, F f) {
  if (n == Least) f(std::integral_constant<int, Least>());
  else if constexpr (Least < Most) by_number<Least + 1, Most>(n, f);
  else throw form_not_there{std::to_string(n)};
}

/// f(parts...) of vectors, up to four.
template <class F>
row of_vectors(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    std::vector<decltype(in.template x<1>("0"))> x;
    for (const array& a : all_tensors(in)) x.push_back(in.template x<1>(a));
    by_number<1, 4>(static_cast<index_t>(x.size()), [&](auto count) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        F{}(in, x[I]...);
      }(std::make_index_sequence<std::size_t{decltype(count)::value}>());
    });
  });
}

/// f of a list of tensors of one rank.
template <class F>
row of_list(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const std::vector<array> arrays = in.tensors();
    by_number<0, 3>(static_cast<index_t>(arrays[0].extents.size()), [&](auto rank) {
      std::vector<decltype(in.template x<decltype(rank)::value>(arrays[0]))> parts;
      for (const array& a : arrays) {
        if (a.extents.size() != arrays[0].extents.size()) throw form_not_there{"several ranks"};
        parts.push_back(in.template x<decltype(rank)::value>(a));
      }
      in.give(F{}(parts));
    });
  });
}

/// f(x) of a tensor of its own rank.
template <int Least, class F>
row of_rank(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank<Least, 4>(in, "0", [&](auto rank) { in.give(F{}(in.template x<decltype(rank)::value>("0"), in)); });
  });
}

/// f(x, count) or f(x, cuts).
template <int Least, class F>
row parted(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank<Least, 4>(in, "0", [&](auto rank) {
      const auto x = in.template x<decltype(rank)::value>("0");
      const char* how = "1 indices_or_sections sections indices";
      each(in, in.is(how, "i") ? F{}(x, in.integer(how, 1)) : F{}(x, in.integers(how)));
    });
  });
}

/// The numbers of a list as an array for a call.
template <std::size_t N>
void copy_to(index_t (&to)[N], const shape& from) {
  std::copy(from.begin(), from.end(), to);
}

/// Several operands joined by a binary op, from the first on.
template <class... T, class F>
row folded(const char* names, F) {
  return on<T...>(names, [](const auto& in) {
    const std::vector<array> arrays = in.tensors();
    if (arrays.size() == 2) throw form_not_there{"two operands, which have a row of their own"};
    auto y = in.template x<4>(arrays[0]);
    for (std::size_t i = 1; i < arrays.size(); ++i) y = eval(F{}(y, in.template x<4>(arrays[i])));
    in.give(y);
  });
}

/// The number of a tensor that is an attribute, as ONNX' model has it in JSON.
inline double number_in(const std::string& json) {
  const std::size_t data = json.find("\"data\": [");
  if (data == std::string::npos) throw form_not_there{json};
  return std::strtod(json.c_str() + data + 9, nullptr);
}

}  // namespace

std::vector<row> layout_rows() {
  return {
      of_vectors("op:meshgrid.variadic_tensors op:meshgrid.list_of_tensors",
                 [](const auto& in, const auto&... x) {
                   const std::string by = in.text("indexing", "ij");
                   if (by != "ij" && by != "xy") throw form_not_there{by};
                   const auto grids = sinter::meshgrid(by == "ij" ? sinter::indexing::ij : sinter::indexing::xy, x...);
                   std::apply([&](const auto&... g) { in.give_together(g...); }, grids);
                 }),
      of_list("op:hstack", REDUCTION(hstack)),
      of_list("op:vstack", REDUCTION(vstack)),
      of_list("op:dstack", REDUCTION(dstack)),
      of_list("op:column_stack", REDUCTION(column_stack)),
      parted<1>("op:hsplit", REDUCTION(hsplit)),
      parted<2>("op:vsplit", REDUCTION(vsplit)),
      parted<3>("op:dsplit", REDUCTION(dsplit)),
      of_rank<2>("op:fliplr", OF_X(fliplr(x))),
      of_rank<1>("op:flipud", OF_X(flipud(x))),
      of_rank<2>("op:rot90", OF_X([&] {
                   const shape axes = in.integers("2 dims");
                   if (axes.empty()) return rot90(x, in.integer("1 k", 1));
                   return rot90(x, in.integer("1 k", 1), axes.at(0), axes.at(1));
                 }())),
      of_rank<1>("op:diag_embed",
                 OF_X(diag_embed(x, in.integer("1 offset", 0), in.integer("2 dim1", -2), in.integer("3 dim2", -1)))),
      of_rank<0>("op:diagflat", OF_X(diagflat(x, in.integer("1 offset", 0)))),
      on<float>("op:movedim op:moveaxis",
                [](const auto& in) {
                  shape from = in.integers("1 source"), to = in.integers("2 destination");
                  if (from.size() != to.size()) throw form_not_there{"lists of two lengths"};
                  for (shape* axes : {&from, &to})
                    for (index_t& a : *axes) a = in.shown_axis(a, 4);
                  by_number<1, 4>(static_cast<index_t>(from.size()), [&](auto count) {
                    index_t a[std::size_t{decltype(count)::value}], b[std::size_t{decltype(count)::value}];
                    copy_to(a, from);
                    copy_to(b, to);
                    in.give(movedim(in.template x<4>("0"), a, b));
                  });
                }),
      on<float>("op:unflatten",
                [](const auto& in) {
                  const shape sizes = in.integers("2 sizes");
                  by_number<1, 4>(static_cast<index_t>(sizes.size()), [&](auto count) {
                    index_t list[std::size_t{decltype(count)::value}];
                    copy_to(list, sizes);
                    in.give(unflatten(in.template x<4>("0"), in.axis("1 dim"), list));
                  });
                }),
      on<float>("op:repeat_interleave",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const bool by_axis = in.has("2 dim None");
                  if (in.is("1 repeats", "T")) {
                    const auto times = in.template constant<std::int64_t, 1>("1 repeats");
                    if (by_axis) in.give(repeat_interleave(x, times, in.axis("2 dim")));
                    else in.give(repeat_interleave(x, times));
                  } else if (by_axis) {
                    in.give(repeat_interleave(x, in.integer("1 repeats", 1), in.axis("2 dim")));
                  } else {
                    in.give(repeat_interleave(x, in.integer("1 repeats", 1)));
                  }
                }),
      on<float>("onnx:Flatten",
                [](const auto& in) {
                  const auto s = in.tensor_of("0").extents;
                  const auto rank = static_cast<index_t>(s.size());
                  index_t axis = in.integer("axis", 1), rows = 1;
                  if (axis < 0) axis += rank;
                  for (index_t d = 0; d < axis; ++d) rows *= s[static_cast<std::size_t>(d)];
                  in.give(in.template x<4>("0").reshape({rows, -1}));
                }),
      on<float>("onnx:Split",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const index_t axis = in.axis("axis", 0);
                  const auto parts = static_cast<index_t>(in.results());
                  if (in.has("1")) each(in, sinter::split(x, in.integers("1"), axis));
                  else each(in, sinter::chunk(x, in.integer("num_outputs", parts), axis));
                }),
      on<float>("onnx:Unsqueeze",
                [](const auto& in) {
                  shape axes = in.integers("1");
                  if (axes.size() != 2) throw form_not_there{"another number of axes"};
                  const index_t rank = in.rank("0") + 2;
                  for (index_t& a : axes) a = a < 0 ? a + rank : a;
                  std::sort(axes.begin(), axes.end());
                  by_rank<1, 4>(in, "0", [&](auto r) {
                    in.give(in.template x<decltype(r)::value>("0").unsqueeze(axes[0]).unsqueeze(axes[1]));
                  });
                }),
      made("onnx:Shape",
           [](const call& in) {
             const shape s = in.tensor_of("0").extents;
             const auto rank = static_cast<index_t>(s.size());
             const auto limited = [&](index_t i) { return std::clamp<index_t>(i < 0 ? i + rank : i, 0, rank); };
             const index_t begin = limited(in.integer("start", 0)), end = limited(in.integer("end", rank));
             by_number<1, 4>(rank, [&](auto r) {
               const auto x = in.constant<float, decltype(r)::value>("0").shape();
               const shape all(x.begin(), x.end());
               in.give(sinter::from_data(all, {rank}).slice(0, begin, std::max(begin, end)));
             });
           }),
      made("onnx:Size",
           [](const call& in) { in.give(sinter::full<std::int64_t>(in.constant<float, 4>("0").numel())); }),
      made("onnx:EyeLike",
           [](const call& in) {
             in.only("k", 0);
             const array like = in.tensor_of("0");
             const index_t n = like.extents.at(0), m = like.extents.at(1);
             const index_t as = in.integer("dtype", like.dtype == "int32" ? 6 : 0);
             if (as == 1) in.give(sinter::eye<float>(n, m));
             else if (as == 11) in.give(sinter::eye<double>(n, m));
             else if (as == 6) in.give(sinter::eye<std::int32_t>(n, m));
             else throw form_not_there{"dtype"};
           }),
      made("onnx:ConstantOfShape",
           [](const call& in) {
             const auto e = call::shown<4>(in.integers("0"));
             const std::string json = in.attribute("value");
             if (json.find("\"float32\"") != std::string::npos) in.give(sinter::full<float>(e, number_in(json)));
             else if (json.find("\"int32\"") != std::string::npos)
               in.give(sinter::full<std::int32_t>(e, static_cast<std::int32_t>(number_in(json))));
             else throw form_not_there{json};
           }),
      made("onnx:Range",
           [](const call& in) {
             if (in.tensor_of("0").dtype != "int32") throw form_not_there{in.tensor_of("0").dtype};
             in.give(sinter::arange<std::int32_t>(in.integer("0", 0), in.integer("1", 0), in.integer("2", 1)));
           }),
      folded<float>("onnx:Sum", [](const auto& x, const auto& y) { return x + y; }),
      folded<float>("onnx:Max", [](const auto& x, const auto& y) { return maximum(x, y); }),
      folded<float>("onnx:Min", [](const auto& x, const auto& y) { return minimum(x, y); }),
      on<float>("onnx:Mean",
                [](const auto& in) {
                  const std::vector<array> arrays = in.tensors();
                  std::vector<decltype(in.template x<4>(arrays[0]))> parts;
                  for (const array& a : arrays) parts.push_back(in.template x<4>(a));
                  in.give(mean(sinter::stack(0, parts), 0));
                }),
  };
}

}  // namespace judge

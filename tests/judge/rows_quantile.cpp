// tests/judge/rows_quantile.cpp: quantiles, medians and other places of the order, each of operands of their own rank.
#include "tables.hpp"

namespace judge {

namespace {

template <class In>
sinter::quantile_options interpolation_of(const In& in) {
  using sinter::between_elements;
  const std::map<std::string, between_elements> known = {{"linear", between_elements::linear},
                                                         {"lower", between_elements::lower},
                                                         {"higher", between_elements::higher},
                                                         {"midpoint", between_elements::midpoint},
                                                         {"nearest", between_elements::nearest}};
  const auto found = known.find(in.text("interpolation", "linear"));
  if (found == known.end()) throw form_not_there{"interpolation"};
  return {found->second};
}

/// f(x, q, axis, keepdim, options), where q is a number or a tensor, and the axis and keepdim may be left out.
template <class F>
row quantile_row(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank<0>(in, "0 input", [&](auto rank) {
      const auto x = in.template x<decltype(rank)::value>("0 input");
      const auto o = interpolation_of(in);
      const auto with = [&](const auto& q) {
        const bool keep = in.flag("3 keepdim", false);
        if (!in.has("2 dim None")) {
          if (keep) throw form_not_there{"keepdim of all axes"};
          return in.give(F{}(x, q, o));
        }
        const index_t axis = in.integer("2 dim", 0);
        if (keep) in.give(F{}(x, q, axis, sinter::keepdim, o));
        else in.give(F{}(x, q, axis, o));
      };
      if (in.is("1 q", "T")) with(in.template x<1>("1 q"));
      else with(in.number("1 q", 0.5));
    });
  });
}

/// f(x), f(x, axis) or f(x, axis, keepdim).
template <class F>
row median_row(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank<0>(in, "0 input", [&](auto rank) {
      const auto x = in.template x<decltype(rank)::value>("0 input");
      if (!in.has("1 dim")) return in.give(F{}(x));
      const index_t axis = in.integer("1 dim", 0);
      if (in.flag("2 keepdim", false)) in.give(F{}(x, axis, sinter::keepdim));
      else in.give(F{}(x, axis));
    });
  });
}

}  // namespace

std::vector<row> quantile_rows() {
  return {
      quantile_row("op:quantile", REDUCTION(quantile)),
      quantile_row("op:nanquantile", REDUCTION(nanquantile)),
      median_row("op:median", REDUCTION(median)),
      median_row("op:nanmedian", REDUCTION(nanmedian)),
      on<float>("op:kthvalue",
                [](const auto& in) {
                  by_rank<0>(in, "0 input", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0 input");
                    const index_t k = in.integer("1 k", 1), axis = in.integer("2 dim", -1);
                    if (in.flag("3 keepdim", false)) in.give(kthvalue(x, k, axis, sinter::keepdim));
                    else in.give(kthvalue(x, k, axis));
                  });
                }),
  };
}

}  // namespace judge

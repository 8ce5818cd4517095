// sinter/ops/einsum.hpp: sums of products, as an equation of letters says.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/tensordot.hpp"

namespace sinter {

struct equation_with_other_signs_than_letters_commas_dots_and_an_arrow;
struct write_it_as_in_ij_comma_jk_arrow_ik;
template <int, int>
struct equation_of_so_many_terms_for_so_many_operands;
struct write_one_term_for_each_operand;
template <int, int>
struct operand_of_this_number_and_rank_does_not_fit_its_term;
struct write_one_letter_for_each_axis_or_three_dots_for_some;
struct result_with_a_letter_that_no_operand_has_or_that_it_names_twice;
struct name_axes_of_operands_once_each;
struct result_of_more_than_8_axes;
struct sum_over_more_axes;

namespace detail {

/// The text of an equation as a template argument.
template <std::size_t N>
struct equation {
  char text[N] = {};
  consteval equation(const char (&from)[N]) {  // NOLINT: implicit on purpose
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

/// Names of axes: letters, and 256 and more for those that three dots stand for, counted from the last.
struct axis_names {
  int count = 0;
  int of[std::size_t{2 * max_rank}] = {};

  constexpr int find(int name) const {
    for (int i = 0; i < count; ++i)
      if (of[i] == name) return i;
    return -1;
  }
  constexpr bool has(int name) const { return find(name) >= 0; }
  constexpr void add(int name) { of[count++] = name; }
  /// Those for which keep(name).
  template <class F>
  constexpr axis_names only(const F& keep) const {
    axis_names some;
    for (int i = 0; i < count; ++i)
      if (keep(of[i])) some.add(of[i]);
    return some;
  }
  constexpr axis_names followed_by(const axis_names& more) const {
    axis_names all = *this;
    for (int i = 0; i < more.count; ++i) all.add(more.of[i]);
    return all;
  }
};
inline constexpr int hidden_axis = 256;

enum class equation_fault { none, sign, terms, rank, letter, result };

/// What an equation says of n operands.
template <int N>
struct einsum_plan {
  axis_names operand[std::size_t{N}];
  axis_names result;
  equation_fault fault = equation_fault::none;
  int at = 0;  ///< the number of terms, or the operand that does not fit its term

  /// Is the axis part of the result or of operands from number `first` on?
  constexpr bool is_needed(int name, int first) const {
    for (int i = first; i < N; ++i)
      if (operand[i].has(name)) return true;
    return result.has(name);
  }
};

/// One term: letters, and three dots at one place.
struct equation_term {
  int count = 0, dots_at = -1;
  int letters[64] = {};
};

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The axes of a term, where three dots stand for `hidden` of them.
constexpr axis_names axes_of_term(const equation_term& t, int hidden) {
  axis_names axes;
  for (int i = 0; i <= t.count; ++i) {
    for (int k = hidden; i == t.dots_at && k > 0; --k) axes.add(hidden_axis + k);
    if (i < t.count) axes.add(t.letters[i]);
  }
  return axes;
}

template <int N>
constexpr einsum_plan<N> read_equation(const char* text, const int (&ranks)[std::size_t{N}]) {
  einsum_plan<N> plan;
  const auto fail = [&](equation_fault fault, int at) {
    plan.fault = fault;
    plan.at = at;
    return plan;
  };
  equation_term terms[std::size_t{N}], result;
  int term = 0;
  bool has_arrow = false;
  for (const char* c = text; *c != 0; ++c) {
    equation_term& t = has_arrow ? result : terms[term < N ? term : N - 1];
    if (*c == ' ') continue;
    if (is_letter(*c)) {
      if (t.count == 64) return fail(equation_fault::sign, 0);
      t.letters[t.count++] = *c;
    } else if (*c == '.' && c[1] == '.' && c[2] == '.' && t.dots_at < 0) {
      t.dots_at = t.count;
      c += 2;
    } else if (*c == ',' && !has_arrow) {
      ++term;
    } else if (*c == '-' && c[1] == '>' && !has_arrow) {
      has_arrow = true;
      ++c;
    } else {
      return fail(equation_fault::sign, 0);
    }
  }
  if (term + 1 != N) return fail(equation_fault::terms, term + 1);
  int hidden = 0;
  for (int i = 0; i < N; ++i) {
    const int more = ranks[i] - terms[i].count;
    if (more < 0 || (more > 0 && terms[i].dots_at < 0)) return fail(equation_fault::rank, i);
    plan.operand[i] = axes_of_term(terms[i], more);
    if (terms[i].dots_at >= 0 && more > hidden) hidden = more;
  }
  if (!has_arrow) {
    result.dots_at = 0;
    for (int letter = 'A'; letter <= 'z'; ++letter) {
      int times = 0;
      for (const equation_term& t : terms)
        for (int i = 0; i < t.count; ++i) times += t.letters[i] == letter;
      if (times == 1) result.letters[result.count++] = letter;
    }
  }
  const int rank = result.count + (result.dots_at >= 0 ? hidden : 0);
  for (int i = 0; i < result.count; ++i) {
    bool is_there = false;
    for (int k = 0; k < N; ++k) is_there = is_there || plan.operand[k].has(result.letters[i]);
    for (int k = 0; k < i; ++k) is_there = is_there && result.letters[k] != result.letters[i];
    if (!is_there) return fail(equation_fault::letter, 0);
  }
  if (rank > max_rank) return fail(equation_fault::result, rank);
  plan.result = axes_of_term(result, hidden);
  return plan;
}

template <equation E, class... A>
struct einsum_of {
  static constexpr int ranks[sizeof...(A)] = {rank_of<A>...};
  static constexpr einsum_plan<static_cast<int>(sizeof...(A))> plan =
      read_equation<static_cast<int>(sizeof...(A))>(E.text, ranks);
};

template <equation E, class... A>
constexpr auto find_einsum_mistake() {
  if constexpr (!are_factors<A...>) {
    return factor_mistake<A...>{};
  } else {
    constexpr auto plan = einsum_of<E, A...>::plan;
    if constexpr (plan.fault == equation_fault::sign)
      return mistake<equation_with_other_signs_than_letters_commas_dots_and_an_arrow,
                     write_it_as_in_ij_comma_jk_arrow_ik>{};
    else if constexpr (plan.fault == equation_fault::terms)
      return mistake<equation_of_so_many_terms_for_so_many_operands<plan.at, static_cast<int>(sizeof...(A))>,
                     write_one_term_for_each_operand>{};
    else if constexpr (plan.fault == equation_fault::rank)
      return mistake<operand_of_this_number_and_rank_does_not_fit_its_term<plan.at, einsum_of<E, A...>::ranks[plan.at]>,
                     write_one_letter_for_each_axis_or_three_dots_for_some>{};
    else if constexpr (plan.fault == equation_fault::letter)
      return mistake<result_with_a_letter_that_no_operand_has_or_that_it_names_twice,
                     name_axes_of_operands_once_each>{};
    else if constexpr (plan.fault == equation_fault::result)
      return mistake<result_of_more_than_8_axes, sum_over_more_axes>{};
    else return fitting<literals_type<A...>>{};
  }
}
template <equation E, class... A>
using einsum_mistake = decltype(find_einsum_mistake<E, bare<A>...>());

/// Names with equal extents, but that one operand may repeat its only element.
SINTER_SHARED void check_named_extents(const axis_names* names, const shape_piece* shapes, int operands);
#if SINTER_DEFINES
SINTER_SHARED void check_named_extents(const axis_names* names, const shape_piece* shapes, int operands) {
  for (int i = 0; i < operands; ++i)
    for (int d = 0; d < names[i].count; ++d)
      for (int k = 0; k <= i; ++k)
        for (int e = 0; e < (k == i ? d : names[k].count); ++e) {
          const index_t n = shapes[i].extents[d], m = shapes[k].extents[e];
          if (names[i].of[d] != names[k].of[e] || n == m || (i != k && (n == 1 || m == 1))) continue;
          const char letter[] = {static_cast<char>(names[i].of[d]), 0};
          refuse<shape_error>({"einsum: axis ", names[i].of[d] > hidden_axis ? "..." : letter, " has ", m,
                               " elements in operand ", k, " of shape ", shapes[k], " and ", n, " in operand ", i,
                               " of shape ", shapes[i]});
        }
}
#endif  // SINTER_DEFINES

/// A tensor or a variable with the names of its axes.
template <axis_names Axes, class X>
struct named {
  static constexpr axis_names axes = Axes;
  X x;
};

template <axis_names Axes, class X>
named<Axes, X> with_names(X x) {
  return {std::move(x)};
}

/// x, the axes of which stand as `To` says; it has all of them.
template <axis_names To, axis_names Axes, class X>
auto arranged(const named<Axes, X>& n) {
  index_t order[max_rank] = {};
  bool moves = false;
  for (int d = 0; d < To.count; ++d) {
    order[d] = Axes.find(To.of[d]);
    moves = moves || order[d] != d;
  }
  return moves ? permuted(n.x, order) : n.x;
}

/// A sum that keeps the element type of x.
template <class X, std::size_t N>
auto sum_of_elements(const X& x, const index_t (&axes)[N]) {
  if constexpr (std::is_integral_v<element_of<X>>) return eval(cast<element_of<X>>(sum(x, axes)));
  else return eval(sum(x, axes));
}

/// The last `count` axes of x, summed.
template <int Count, class X>
auto sum_last(const X& x) {
  index_t axes[std::size_t{Count}];
  for (int i = 0; i < Count; ++i) axes[i] = rank_of<X> - Count + i;
  return sum_of_elements(x, axes);
}

/// The diagonals of axes that have one name, summed along axes that are not kept.
template <axis_names Kept, axis_names Axes, class X>
auto simplified(const named<Axes, X>& n) {
  constexpr int second = [] {
    for (int i = 1; i < Axes.count; ++i)
      if (Axes.find(Axes.of[i]) < i) return i;
    return 0;
  }();
  if constexpr (second > 0) {
    constexpr int first = Axes.find(Axes.of[second]);
    constexpr axis_names left = [] {  // diagonal() takes the two axes away and puts theirs last
      axis_names others;
      for (int i = 0; i < Axes.count; ++i)
        if (i != first && i != second) others.add(Axes.of[i]);
      others.add(Axes.of[first]);
      return others;
    }();
    return simplified<Kept>(with_names<left>(n.x.diagonal(0, first, second)));
  } else {
    constexpr axis_names kept = Axes.only([](int name) { return Kept.has(name); });
    constexpr axis_names summed = Axes.only([](int name) { return !Kept.has(name); });
    if constexpr (summed.count == 0) {
      return n;
    } else {
      return with_names<kept>(sum_last<summed.count>(arranged<kept.followed_by(summed)>(n)));
    }
  }
}

/// The extents of named axes; an extent of 1 is that of the other operand.
template <axis_names Names, axis_names OfX, axis_names OfY, class X, class Y>
extents<Names.count> extents_of(const named<OfX, X>& a, const named<OfY, Y>& b) {
  extents<Names.count> e;
  for (int d = 0; d < Names.count; ++d) {
    const int i = OfX.find(Names.of[d]), k = OfY.find(Names.of[d]);
    e[d] = i < 0 ? 1 : a.x.shape()[i];
    if (k >= 0 && e[d] == 1) e[d] = b.x.shape()[k];
  }
  return e;
}
/// x with axes in the order of `All`, of which it lacks some: they have extent 1.
template <axis_names All, axis_names Axes, class X>
auto aligned(const named<Axes, X>& n) {
  const auto x = arranged<All.only([](int name) { return Axes.has(name); })>(n);
  if constexpr (Axes.count == All.count) {
    return x;
  } else {
    extents<All.count> shape;
    for (int d = 0, from = 0; d < All.count; ++d) shape[d] = Axes.has(All.of[d]) ? x.shape()[from++] : 1;
    return x.reshape(shape.values);
  }
}
/// x as matrices: a batch, rows and columns, which are groups of its axes. One of the extents that the groups have may
/// be 1 in x.
template <axis_names Batch, axis_names Rows, axis_names Columns, axis_names Axes, class X>
auto as_matrices(const named<Axes, X>& n, const extents<Batch.count>& batch, const extents<Rows.count>& rows,
                 const extents<Columns.count>& columns) {
  constexpr axis_names order = Batch.followed_by(Rows).followed_by(Columns);
  const auto x = arranged<order>(n);
  extents<order.count> shape;
  for (int d = 0; d < Batch.count; ++d) shape[d] = batch[d];
  for (int d = 0; d < Rows.count; ++d) shape[Batch.count + d] = rows[d];
  for (int d = 0; d < Columns.count; ++d) shape[Batch.count + Rows.count + d] = columns[d];
  const auto whole = x.shape() == shape ? x : x.broadcast_to(shape.values);
  if constexpr (Batch.count == 0) return whole.reshape({rows.numel(), columns.numel()});
  else return whole.reshape({batch.numel(), rows.numel(), columns.numel()});
}

/// The product of two operands, summed along the axes that both have and that are not kept.
template <axis_names Kept, axis_names OfX, axis_names OfY, class X, class Y>
auto multiply_named(const named<OfX, X>& a, const named<OfY, Y>& b) {
  constexpr axis_names batch = OfX.only([](int name) { return OfY.has(name) && Kept.has(name); });
  constexpr axis_names summed = OfX.only([](int name) { return OfY.has(name) && !Kept.has(name); });
  constexpr axis_names rows = OfX.only([](int name) { return !OfY.has(name); });
  constexpr axis_names columns = OfY.only([](int name) { return !OfX.has(name); });
  constexpr int kept = batch.count + rows.count + columns.count;
  static_assert(kept + (rows.count == 0 || columns.count == 0 ? summed.count : 0) <= max_rank,
                "sinter: a product of two operands of einsum would have more than 8 axes; use several einsum");
  constexpr axis_names result = batch.followed_by(rows).followed_by(columns);
  if constexpr (summed.count == 0) {
    return with_names<result>(eval(aligned<result>(a) * aligned<result>(b)));
  } else if constexpr (rows.count == 0 && columns.count == 0) {
    constexpr axis_names all = batch.followed_by(summed);
    return with_names<result>(sum_last<summed.count>(aligned<all>(a) * aligned<all>(b)));
  } else {
    const auto of_batch = extents_of<batch>(a, b);
    const auto of_rows = extents_of<rows>(a, b);
    const auto of_columns = extents_of<columns>(a, b);
    const auto of_sum = extents_of<summed>(a, b);
    extents<kept> shape;
    for (int d = 0; d < kept; ++d)
      shape[d] = d < batch.count                ? of_batch[d]
                 : d < batch.count + rows.count ? of_rows[d - batch.count]
                                                : of_columns[d - batch.count - rows.count];
    const auto y = eval(matmul(as_matrices<batch, rows, summed>(a, of_batch, of_rows, of_sum),
                               as_matrices<batch, summed, columns>(b, of_batch, of_sum, of_columns)));
    return with_names<result>(y.reshape(shape.values));
  }
}

/// The product of `left`, which is made of the operands before number I, and of the others.
template <class Of, int I, class Left, class... X>
auto multiply_rest(const Left& left, const std::tuple<X...>& operands) {
  if constexpr (I == static_cast<int>(sizeof...(X))) {
    return arranged<Of::plan.result>(simplified<Of::plan.result>(left));
  } else {
    constexpr axis_names of_left =
        Left::axes.only([](int name) { return Of::plan.operand[I].has(name) || Of::plan.is_needed(name, I + 1); });
    constexpr axis_names of_right =
        Of::plan.operand[I].only([](int name) { return Left::axes.has(name) || Of::plan.is_needed(name, I + 1); });
    constexpr axis_names kept = [] {
      axis_names names;
      for (const axis_names& axes : {Left::axes, Of::plan.operand[I]})
        for (int d = 0; d < axes.count; ++d)
          if (Of::plan.is_needed(axes.of[d], I + 1) && !names.has(axes.of[d])) names.add(axes.of[d]);
      return names;
    }();
    return multiply_rest<Of, I + 1>(
        multiply_named<kept>(simplified<of_left>(left),
                             simplified<of_right>(with_names<Of::plan.operand[I]>(std::get<I>(operands)))),
        operands);
  }
}

}  // namespace detail

/// A sum of products of tensors, whose axes an equation names, as torch.einsum. It is a template argument, so that the
/// rank of the result is known. Each operand has a term of letters, one for each axis. Axes of one letter are walked
/// together: a letter twice in a term is the diagonal, and a letter that the result lacks is summed over. Without an
/// arrow the result has the letters that stand once, in the order of the alphabet, capitals first. Three dots stand for
/// axes without letters, which broadcast; without an arrow they are the first ones of the result. Axes of one letter
/// have equal extents, or 1 in some operands, which is repeated. Two operands are one product of matrices, or one
/// elementwise pass where nothing is summed or nothing else is left; more are multiplied from left to right. A single
/// operand is only shown in another way, where nothing is summed. All element types but bool. Runs at once. Errors:
/// shape_error where extents do not fit; a wrong equation does not compile.
///
///     tensor scores = einsum<"bihd, bjhd -> bhij">(queries, keys);
///     tensor traces = einsum<"...ii -> ...">(x);
template <detail::equation E, class... A>
  requires(detail::is_fitting<detail::einsum_mistake<E, A...>>)
auto einsum(A&&... a) {
  using of = detail::einsum_of<E, detail::bare<A>...>;
  (detail::check_defined("einsum", a), ...);
  const std::tuple operands{detail::eval_to_read(std::forward<A>(a))...};
  std::apply(
      [](const auto&... x) {
        const detail::shape_piece shapes[] = {{x.shape().data(), detail::bare<decltype(x)>::rank}...};
        detail::check_named_extents(of::plan.operand, shapes, static_cast<int>(sizeof...(A)));
      },
      operands);
  return detail::multiply_rest<of, 1>(detail::with_names<of::plan.operand[0]>(std::get<0>(operands)), operands);
}

template <detail::equation E, class... A, class Problem = typename detail::einsum_mistake<E, A...>::problem,
          class Fix = typename detail::einsum_mistake<E, A...>::fix>
void einsum(A&&...) = delete;

/// The rank of the result follows from the equation, so it is an argument of the type.
struct equation_that_is_an_argument;
struct write_einsum_less_equation_greater;
template <int = 0, class... A, class Problem = equation_that_is_an_argument,
          class Fix = write_einsum_less_equation_greater>
void einsum(const char*, A&&...) = delete;

}  // namespace sinter

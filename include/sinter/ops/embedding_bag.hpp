// sinter/ops/embedding_bag.hpp: rows of a table, looked up by ids and joined bag by bag.
#pragma once

#include "sinter/ops/embedding.hpp"

namespace sinter {

template <class>
struct offsets_of_element_type;
template <class...>
struct weights_and_table_with_elements_of_type;
template <int>
struct bags_without_offsets_of_rank;
template <int...>
struct ids_and_offsets_of_ranks;
template <int...>
struct ids_and_weights_of_ranks;
struct use_integer_offsets;
struct use_weights_of_the_element_type_of_the_table;
struct use_ids_of_rank_2_or_pass_offsets;
struct use_ids_and_offsets_of_rank_1;
struct use_weights_of_the_shape_of_the_ids;

/// What becomes of the rows of a bag.
enum class bag_mode { sum, mean, max };

/// How embedding_bag() joins rows; as in torch.nn.functional.embedding_bag.
///
///     embedding_bag(ids, offsets, table, {.mode = bag_mode::sum, .padding_idx = 0});
struct embedding_bag_options {
  bag_mode mode = bag_mode::mean;
  std::optional<index_t> padding_idx = std::nullopt;  ///< ids that are in no bag; counted from the end where negative
  bool scale_grad_by_freq = false;   ///< the gradient of a row is divided by how often its id is in bags; not for max
  bool include_last_offset = false;  ///< the last offset is where the last bag ends
};

namespace detail {

/// Stands for offsets or weights that a call leaves out.
struct absent {};
template <class X, class Else>
using present_or = std::conditional_t<std::is_same_v<X, absent>, Else, X>;

/// Of ids I, offsets O, a table W and weights S.
template <class I, class O, class W, class S>
constexpr auto find_bag_mistake() {
  using offsets = present_or<O, I>;
  using weights = present_or<S, W>;
  if constexpr (!expression<I> || !expression<offsets> || !expression<W> || !expression<weights>)
    return no_operands<I, offsets, W, weights>{};
  else if constexpr (!devices_agree<I, offsets, W, weights>)
    return mistake<operands_on_different_devices<device_of<I>, device_of<offsets>, device_of<W>, device_of<weights>>,
                   copy_one_operand_with_dot_to>{};
  else if constexpr (!is_fitting<embedding_mistake<I, W>>) return embedding_mistake<I, W>{};
  else if constexpr (!integer_element<element_of<offsets>>)
    return mistake<offsets_of_element_type<element_of<offsets>>, use_integer_offsets>{};
  else if constexpr (!std::is_same_v<element_of<weights>, element_of<W>>)
    return mistake<weights_and_table_with_elements_of_type<element_of<weights>, element_of<W>>,
                   use_weights_of_the_element_type_of_the_table>{};
  else if constexpr (std::is_same_v<O, absent> && rank_of<I> != 2)
    return mistake<bags_without_offsets_of_rank<rank_of<I>>, use_ids_of_rank_2_or_pass_offsets>{};
  else if constexpr (!std::is_same_v<O, absent> && (rank_of<I> != 1 || rank_of<offsets> != 1))
    return mistake<ids_and_offsets_of_ranks<rank_of<I>, rank_of<offsets>>, use_ids_and_offsets_of_rank_1>{};
  else if constexpr (!std::is_same_v<S, absent> && rank_of<weights> != rank_of<I>)
    return mistake<ids_and_weights_of_ranks<rank_of<I>, rank_of<weights>>, use_weights_of_the_shape_of_the_ids>{};
  else return fitting<element_of<W>>{};
}
template <class I, class O, class W, class S>
using bag_mistake = decltype(find_bag_mistake<bare<I>, bare<O>, bare<W>, bare<S>>());

/// Is B among embedding_bag(ids, B, C) a list of offsets?
template <class B>
concept is_bag_offsets = expression<B> && integer_element<element_of<B>>;

/// The same of the operands as they stand in a call: ids, offsets or none, table, weights or none.
template <class I, class... More>
struct bag_call;
template <class I, class W>
struct bag_call<I, W> {
  using mistake = bag_mistake<I, absent, W, absent>;
};
template <class I, class B, class C>
struct bag_call<I, B, C> {
  using mistake = bag_mistake<I, absent, B, C>;
};
template <class I, is_bag_offsets B, class C>
struct bag_call<I, B, C> {
  using mistake = bag_mistake<I, B, C, absent>;
};
template <class I, class O, class W, class S>
struct bag_call<I, O, W, S> {
  using mistake = bag_mistake<I, O, W, S>;
};
template <class... A>
using bag_call_mistake = typename bag_call<A...>::mistake;

}  // namespace detail

namespace ops {

/// Which of n ids are in which bag.
struct id_bags {
  const std::int64_t* offsets;  ///< count + 1 of them; null for bags of `each` ids
  const std::int64_t* ids;
  index_t count, each, n;

  /// The first place of bag b; of bag `count` where the last one ends.
  SINTER_WORD index_t begin(index_t b) const {
    if (offsets == nullptr) return b * each;
    const index_t place = offsets[b];
    return place < 0 ? 0 : place < n ? place : n;
  }
  /// The last bag that begins at a place or before it; -1 if there is none, or if it has ended there.
  SINTER_WORD index_t bag_of(index_t place) const {
    index_t low = 0, high = count;  // bags before `low` begin there or before it
    while (low < high) {
      const index_t b = (low + high) / 2;
      if (begin(b) <= place) low = b + 1;
      else high = b;
    }
    return low > 0 && place < begin(low) ? low - 1 : -1;
  }
};

/// y[b] = the rows of bag b, joined. Bags are count + 1 offsets, or none, and then ids, which are checked before.
struct bag_op : kernel_op {
  static constexpr const char* name = "embedding_bag";
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::strided : take::dense; }

  bag_mode mode;
  index_t padding;
  bool by_frequency;
  index_t count, each;  ///< bags, and ids of each, or -1 where there are offsets

  bag_op(const embedding_bag_options& o, index_t row, index_t bags, index_t ids)
      : mode(o.mode), padding(row), by_frequency(o.scale_grad_by_freq), count(bags), each(ids) {}

  id_bags bags_in(const std::int64_t* bags, index_t size) const {
    if (each >= 0) return {nullptr, bags, count, each, size};
    return {bags, bags + count + 1, count, each, size - count - 1};
  }
};

struct embedding_bag_op : bag_op {
  static constexpr unsigned grad_uses[1] = {uses::second};
  /// For the mode max the places of the elements, -1 where there are none.
  template <class T, device D>
  using saves = tensor<std::int32_t, 2, D>;
  using bag_op::bag_op;

  extents<2> shape(const extents<2>& table, const extents<1>&) const { return {{count, table[1]}}; }
  template <class W, class I>
  static constexpr auto mistake() {
    return sinter::detail::embedding_mistake<I, W>{};
  }
};

/// Rows times weights, which stand as the ids do.
struct weighted_embedding_bag_op : bag_op {
  static constexpr unsigned grad_uses[2] = {uses::second | uses::third, uses::first | uses::third};
  using bag_op::bag_op;

  template <int R>
  extents<2> shape(const extents<2>& table, const extents<R>&, const extents<1>&) const {
    return {{count, table[1]}};
  }
  template <class W, class S, class I>
  static constexpr auto mistake() {
    return sinter::detail::embedding_mistake<I, W>{};
  }
};

}  // namespace ops

namespace detail {

SINTER_SHARED_COLD void check_bag_options(const embedding_bag_options& o, bool is_weighted);
SINTER_SHARED void check_offsets(const std::int64_t* offsets, index_t n, index_t ids);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_bag_options(const embedding_bag_options& o, bool is_weighted) {
  if (is_weighted && o.mode != bag_mode::sum)
    refuse<value_error>({"embedding_bag: weights go with bag_mode::sum; pass .mode = bag_mode::sum"});
  if (o.scale_grad_by_freq && o.mode == bag_mode::max)
    refuse<value_error>({"embedding_bag: scale_grad_by_freq does not go with bag_mode::max"});
}
SINTER_SHARED void check_offsets(const std::int64_t* offsets, index_t n, index_t ids) {
  for (index_t b = 0; b < n; ++b) {
    if (offsets[b] < 0 || offsets[b] > ids) refuse_index({"embedding_bag", "offset"}, offsets[b], b, ids + 1);
    if (b == 0 && offsets[0] != 0)
      refuse<value_error>({"embedding_bag: the first offset is ", offsets[0], "; it must be 0"});
    if (b > 0 && offsets[b] < offsets[b - 1])
      refuse<value_error>(
          {"embedding_bag: offset ", offsets[b], " at position ", b, " is below the one before it, ", offsets[b - 1]});
  }
}
#endif  // SINTER_DEFINES

/// Bags as ops take them, one tensor, and what is known of them.
template <device D>
struct packed_bags {
  tensor<std::int64_t, 1, D> bags;
  index_t count, each;
};
template <class I>
packed_bags<device_of<I>> pack_bags(const I& ids, absent, index_t rows, bool) {
  const auto places = checked_indices("embedding_bag", ids, rows, "id").contiguous();
  check_id_count("embedding_bag", places.numel());
  return {places.reshape({-1}), places.shape()[0], places.shape()[1]};
}
template <class I, class O>
packed_bags<device_of<I>> pack_bags(const I& ids, const O& offsets, index_t rows, bool with_last) {
  using D = device_of<I>;
  using list = tensor<std::int64_t, 1, D>;
  check_defined("embedding_bag", offsets);
  const list places = checked_indices("embedding_bag", ids, rows, "id");
  check_id_count("embedding_bag", places.numel());
  const index_t n = places.numel(), begins = offsets.shape()[0], count = with_last ? begins - 1 : begins;
  if (count < 0)
    refuse<shape_error>({"embedding_bag: no offsets; with include_last_offset there is one more than there are bags"});
  const list bags = list::uninitialized({{count + 1 + n}}), first = bags.slice(0, 0, begins);
  write(list(cast<std::int64_t>(offsets)), first);
  if (!with_last) write(constant_expr<std::int64_t>{n}, bags.slice(0, count, count + 1));
  write(places, bags.slice(0, count + 1, count + 1 + n));
  if constexpr (is_cpu_v<D>) check_offsets(first.data(), begins, n);
  else check_indices({"embedding_bag", "offset"}, first, n + 1);
  return {bags, count, -1};
}

/// Nothing for what are no expressions: clang 14 to 19 ask for the type before they check constraints.
template <class W, class S>
struct bag_expression {};
template <expression W, expression S>
struct bag_expression<W, S> {
  using type = kernel_of<ops::weighted_embedding_bag_op, W, S, tensor<std::int64_t, 1, device_of<W>>>;
};
template <expression W>
struct bag_expression<W, absent> {
  using type = kernel_of<ops::embedding_bag_op, W, tensor<std::int64_t, 1, device_of<W>>>;
};
template <class W, class S = absent>
using embedding_bag_of = typename bag_expression<W, S>::type;

template <class I, class O, class W, class S>
embedding_bag_of<W, S> make_embedding_bag(const I& ids, const O& offsets, W&& table, S&& weights,
                                          const embedding_bag_options& o) {
  constexpr bool is_weighted = !std::is_same_v<bare<S>, absent>;
  check_bag_options(o, is_weighted);
  check_defined("embedding_bag", table);
  const index_t rows = table.shape()[0], padding = checked_padding("embedding_bag", o.padding_idx, rows);
  auto packed = pack_bags(ids, offsets, rows, o.include_last_offset);
  if constexpr (is_weighted) {
    check_defined("embedding_bag", weights);
    if (!(weights.shape() == ids.shape()))
      refuse<shape_error>({"embedding_bag: weights of shape ", weights.shape(), " for ids of shape ", ids.shape()});
    return make_kernel(ops::weighted_embedding_bag_op(o, padding, packed.count, packed.each), std::forward<W>(table),
                       std::forward<S>(weights), std::move(packed.bags));
  } else {
    return make_kernel(ops::embedding_bag_op(o, padding, packed.count, packed.each), std::forward<W>(table),
                       std::move(packed.bags));
  }
}

}  // namespace detail

/// The sums, means or largest elements of rows of a table (V,E), bag by bag, as torch.nn.functional.embedding_bag: ids
/// (B,N), the bags, or ids (N) and offsets (B), where each bag begins, the first at 0 => (B,E). Ids and offsets have
/// any integer type, the table is floating point. Ids that are padding_idx are in no bag; a bag without ids gives 0.
/// With include_last_offset there is one offset more, where the last bag ends. With weights of the shape of the ids,
/// and bag_mode::sum, each row is multiplied by its own. Sums are gathered in float for half and bfloat16. Derivative:
/// to a row what its places give, in their order: g of the bag for sum, divided by the ids in the bag for mean, times
/// the weight, and for max that of the elements that were largest, the first of equals; to a weight the sum of g times
/// its row. Errors: index_error for an id outside [0, V) and an offset outside [0, N], as embedding(), value_error for
/// offsets that decrease, which on a GPU give empty bags, or do not begin at 0, and for options that do not go
/// together, shape_error for weights of another shape.
///
///     tensor means = embedding_bag(ids, table);  // (B,N) => (B,E)
///     variable sums = embedding_bag(words, offsets, weight, importance, {.mode = bag_mode::sum});
template <class I, class W>
  requires(detail::is_fitting<detail::bag_call_mistake<I, W>>)
detail::embedding_bag_of<W> embedding_bag(const I& ids, W&& table, const embedding_bag_options& o = {}) {
  return detail::make_embedding_bag(ids, detail::absent{}, std::forward<W>(table), detail::absent{}, o);
}
/// The same of ids (N) in bags that begin at offsets (B).
template <class I, detail::is_bag_offsets O, class W>
  requires(detail::is_fitting<detail::bag_call_mistake<I, O, W>>)
detail::embedding_bag_of<W> embedding_bag(const I& ids, const O& offsets, W&& table,
                                          const embedding_bag_options& o = {}) {
  return detail::make_embedding_bag(ids, offsets, std::forward<W>(table), detail::absent{}, o);
}
/// The same of bags (B,N), each row times its weight.
template <class I, class W, class S>
  requires(!detail::is_bag_offsets<W> && detail::is_fitting<detail::bag_call_mistake<I, W, S>>)
detail::embedding_bag_of<W, S> embedding_bag(const I& ids, W&& table, S&& weights,
                                             const embedding_bag_options& o = {}) {
  return detail::make_embedding_bag(ids, detail::absent{}, std::forward<W>(table), std::forward<S>(weights), o);
}
/// The same of ids (N) in bags that begin at offsets (B), each row times its weight.
template <class I, class O, class W, class S>
  requires(detail::is_fitting<detail::bag_call_mistake<I, O, W, S>>)
detail::embedding_bag_of<W, S> embedding_bag(const I& ids, const O& offsets, W&& table, S&& weights,
                                             const embedding_bag_options& o = {}) {
  return detail::make_embedding_bag(ids, offsets, std::forward<W>(table), std::forward<S>(weights), o);
}
template <class I, class W, class Problem = typename detail::bag_call_mistake<I, W>::problem,
          class Fix = typename detail::bag_call_mistake<I, W>::fix>
void embedding_bag(I&&, W&&, const embedding_bag_options& = {}) = delete;
template <class I, class B, class C, class Problem = typename detail::bag_call_mistake<I, B, C>::problem,
          class Fix = typename detail::bag_call_mistake<I, B, C>::fix>
void embedding_bag(I&&, B&&, C&&, const embedding_bag_options& = {}) = delete;
template <class I, class O, class W, class S, class Problem = typename detail::bag_call_mistake<I, O, W, S>::problem,
          class Fix = typename detail::bag_call_mistake<I, O, W, S>::fix>
void embedding_bag(I&&, O&&, W&&, S&&, const embedding_bag_options& = {}) = delete;

}  // namespace sinter

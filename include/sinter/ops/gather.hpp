// sinter/ops/gather.hpp: gather and index_select, elements picked along an axis by an index tensor.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/detail/picked.hpp"

namespace sinter {

namespace detail {

/// Indices as int64 on their device; each must lie in [0, extent). `what` names them in the error.
template <class I>
auto checked_indices(const char* op, const I& index, index_t extent, const char* what = "index") {
  check_defined(op, index);
  const auto i = [&] {
    if constexpr (std::is_same_v<element_of<I>, std::int64_t>) return eval(index);
    else return eval(cast<std::int64_t>(index));
  }();
  check_indices({op, what}, i.contiguous(), extent);
  return i;
}

}  // namespace detail

template <class...>
struct index_of_element_type;
template <int...>
struct elements_and_index_of_ranks;
struct use_an_integer_index;
struct use_an_index_of_the_rank_of_the_elements;
struct use_an_index_of_rank_1;

namespace detail {

/// Of x and an operand beside it, of whatever element types.
template <class X, class I>
constexpr auto find_beside_mistake() {
  if constexpr (!expression<X> || !expression<I>) return no_operands<X, I>{};
  else if constexpr (!same_device<X, I>)
    return mistake<operands_on_different_devices<device_of<X>, device_of<I>>, copy_one_operand_with_dot_to>{};
  else if constexpr (reads_name<X> || reads_name<I>)
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else return fitting<element_of<X>>{};
}
template <class X, class I>
using beside_mistake = decltype(find_beside_mistake<X, I>());

template <class X, class I, bool OneAxis>
constexpr auto find_index_mistake() {
  if constexpr (!is_fitting<beside_mistake<X, I>>) return beside_mistake<X, I>{};
  else if constexpr (!integer_element<element_of<I>>)
    return mistake<index_of_element_type<element_of<I>>, use_an_integer_index>{};
  else if constexpr (OneAxis && (rank_of<X> < 1 || rank_of<I> != 1))
    return mistake<elements_and_index_of_ranks<rank_of<X>, rank_of<I>>, use_an_index_of_rank_1>{};
  else if constexpr (!OneAxis && (rank_of<X> < 1 || rank_of<X> != rank_of<I>))
    return mistake<elements_and_index_of_ranks<rank_of<X>, rank_of<I>>, use_an_index_of_the_rank_of_the_elements>{};
  else return fitting<element_of<X>>{};
}
template <class X, class I>
using gather_mistake = decltype(find_index_mistake<bare<X>, bare<I>, false>());
template <class X, class I>
using index_select_mistake = decltype(find_index_mistake<bare<X>, bare<I>, true>());

}  // namespace detail

namespace ops {

/// y[c] = x[c with coordinate `axis` = index[c]]; indices are checked before.
struct gather_op : picked_op {
  static constexpr const char* name = "gather";
  template <device D>
  static constexpr bool has_kernels_on = true;

  using picked_op::picked_op;
  template <int R>
  const extents<R>& shape(const extents<R>& x, const extents<R>& index) const {
    for (int d = 0; d < R; ++d)
      if (d != axis && index[d] > x[d])
        sinter::detail::refuse<shape_error>(
            {called, ": index of shape ", index, " is larger than x of shape ", x, " on axis ", d});
    return index;
  }
  template <class X, class I>
  static constexpr auto mistake() {
    return sinter::detail::gather_mistake<X, I>{};
  }
};

}  // namespace ops

/// y[i][j] = x[index[i][j]][j] for axis 0, x[i][index[i][j]] for axis 1, and so on, as torch.gather: index has x's
/// rank, any integer type, and extents at most x's on the other axes; y has the shape of index. Runs at once.
/// Derivative: g is added at the elements that were read. Errors: shape_error, and index_error for an index outside
/// [0, extent), on a GPU where the host next waits for it; until then 0 stands for the element.
///
///     tensor picked = gather(logits, 1, labels.unsqueeze(1));
template <expression X, expression I>
  requires(detail::is_fitting<detail::gather_mistake<X, I>>)
detail::evaluated<X> gather(const X& x, detail::whole axis, const I& index) {
  detail::check_defined("gather", x);
  const int a = detail::checked_axis("gather", axis, rank_of<X>);
  return eval(
      detail::make_kernel(ops::gather_op("gather", a), x, detail::checked_indices("gather", index, x.shape()[a])));
}

/// The slices x[index[0]], x[index[1]], ... along an axis: (…,n,…) and index (m,) => (…,m,…). Runs at once.
/// Derivative: g is added at the slices that were read. Errors: index_error for an index outside [0, extent), on a GPU
/// as for gather.
///
///     tensor batch = index_select(images, 0, permutation);
template <expression X, expression I>
  requires(detail::is_fitting<detail::index_select_mistake<X, I>>)
detail::evaluated<X> index_select(const X& x, detail::whole axis, const I& index) {
  detail::check_defined("index_select", x);
  constexpr int R = rank_of<X>;
  const int a = detail::checked_axis("index_select", axis, R);
  const auto i = detail::checked_indices("index_select", index, x.shape()[a]);
  extents<R> line = detail::ones_extents<R>();
  extents<R> shape = x.shape();
  line[a] = shape[a] = i.numel();
  return eval(detail::make_kernel(ops::gather_op("index_select", a), x, i.reshape(line).broadcast_to(shape)));
}

template <class X, class I, class Problem = typename detail::gather_mistake<X, I>::problem,
          class Fix = typename detail::gather_mistake<X, I>::fix>
void gather(X&&, index_t, I&&) = delete;
template <class X, class I, class Problem = typename detail::index_select_mistake<X, I>::problem,
          class Fix = typename detail::index_select_mistake<X, I>::fix>
void index_select(X&&, index_t, I&&) = delete;

}  // namespace sinter

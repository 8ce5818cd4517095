// sinter/expr/formula.hpp: an elementwise formula as functions know it that are the same for all formulas.
#pragma once

#include <algorithm>

#include "sinter/core/storage.hpp"
#include "sinter/core/work_log.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::detail {

/// The names of the ops of a kernel tree, those of the outermost first, and then `inner`.
template <class K>
struct ops_of_tree {
  static constexpr void list(work_names&, std::size_t&) {}
};
template <class Op, class... A>
struct ops_of_tree<kernel::map<Op, A...>> {
  static constexpr void list(work_names& to, std::size_t& n) {
    if (n + 1 < to.size()) to[n++] = Op::name;
    (ops_of_tree<A>::list(to, n), ...);
  }
};
template <class K>
constexpr work_names list_names_of_ops(const char* inner = nullptr) {
  work_names names{};
  std::size_t n = 0;
  ops_of_tree<K>::list(names, n);
  names[n] = n == 0 && inner == nullptr ? "copy" : inner;
  return names;
}
template <class K>
inline constexpr work_names names_of_ops = list_names_of_ops<K>();

/// An elementwise formula apart from its numbers and operands: one constant for each. `plan` is its kernel tree; for
/// one without numbers it is not read.
struct formula {
  /// Sets `to` to the value.
  void (*write)(const void* plan, const any_shape& shape, const leaf_ref* leaves, const sink_ref& to);
  /// The same of the formula `x` of elements of that type, which has no numbers.
  void (*copy)(const void* plan, const any_shape& shape, const leaf_ref* x, const sink_ref& to);
  storage_ptr (*allocate)(std::size_t bytes);
  int leaves, element_size;
  work_names names = {};
};

/// Is there no number in this kernel tree? Then it need not be carried along.
template <class K>
inline constexpr bool has_no_numbers = std::is_empty_v<K>;
template <class Op, class... A>
inline constexpr bool has_no_numbers<kernel::map<Op, A...>> = std::is_empty_v<Op> && (has_no_numbers<A> && ...);

/// The kernel tree of e, which holds no points.
template <bool Track, class E>
auto plan_of(const E& e) {
  using K = lowered<Track, E>;
  if constexpr (has_no_numbers<K>) return K{};
  else return lower<Track>(e);
}
template <class K>
K plan_from(const void* plan) {
  if constexpr (has_no_numbers<K>) return {};
  else return *static_cast<const K*>(plan);
}

/// The most axes that a pass over R axes is compiled for: those of the host are the same for any number.
template <device D, int R>
inline constexpr int axes_of_pass = is_cpu_v<D> ? max_rank : R;

template <class K, class T, int Axes, device D>
void write_formula(const void* plan, const any_shape& shape, const leaf_ref* leaves, const sink_ref& to) {
  backend<D>::template map<T>(plan_from<K>(plan), shape_upto<Axes>(shape.data, shape.rank), leaves, to);
}
template <class K, class T, int Axes, device D>
inline constexpr formula formula_for{&write_formula<K, T, Axes, D>,
                                     &write_formula<kernel::leaf<T, false>, T, Axes, D>,
                                     &device_runtime<D>::allocate,
                                     K::leaves,
                                     sizeof(T),
                                     names_of_ops<K>};

inline constexpr formula no_formula{};

/// The formula of E, which holds no points, for results of R axes on D.
template <class E, class D = device_of<E>, int R = rank_of<E>>
constexpr const formula& formula_of() {
  constexpr bool is_whole = !reads_name<E>;
  static_assert(is_whole,
                "sinter: a name of let() is evaluated outside of the formula; it stands for one element, and only the "
                "formula that the function returns can read it");
  if constexpr (!is_whole) return no_formula;  // so that there is one message
  else return formula_for<lowered<false, E>, element_of<E>, axes_of_pass<D, R>, D>;
}

/// The strides of a dense result whose axes lie in memory as those of the operands do; see memory_order().
SINTER_SHARED void follow_operands(const any_shape& shape, const leaf_ref* leaves, int count, index_t* strides);

/// The value in new memory, and its strides. Errors: memory_error.
SINTER_SHARED storage_ptr run_formula(const formula& f, const void* plan, const any_shape& shape,
                                      const leaf_ref* leaves, index_t* strides);

/// Writes the value to what `to` shows, which the formula broadcasts to.
SINTER_SHARED void write_formula_to(const formula& f, const void* plan, const leaf_ref* leaves, const leaf_ref& to);

/// May a pass that writes `to` not read these leaves at the same time? It may where each leaf on the same storage is
/// read at exactly the index that is written.
SINTER_SHARED bool clashes(const leaf_ref* leaves, int count, const leaf_ref& to);

/// The same as write_formula_to, by way of new memory where the two clash; `shape` is that of the value.
SINTER_SHARED void assign_formula(const formula& f, const void* plan, const any_shape& shape, const leaf_ref* leaves,
                                  const leaf_ref& to);

inline bool has_no_elements(const leaf_ref& view) {
  return std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank;
}
/// Do the two overlap? Not only where they are the same: wrapped memory may have several handles.
inline bool share_memory(const storage& a, const storage& b) {
  const auto p = reinterpret_cast<std::uintptr_t>(a.data), q = reinterpret_cast<std::uintptr_t>(b.data);
  return p < q + b.bytes && q < p + a.bytes;
}

#if SINTER_DEFINES

SINTER_SHARED void follow_operands(const any_shape& shape, const leaf_ref* leaves, int count, index_t* strides) {
  const int rank = shape.rank;
  if (rank < 2 || count == 0) return row_major_strides(shape.data, rank, strides);
  index_t of_leaf[max_operands][max_rank];
  const index_t* in_turn[max_operands];
  for (int s = 0; s < count; ++s) {
    broadcast_strides(leaves[s].shape, leaves[s].strides, leaves[s].rank, shape.data, of_leaf[s], rank);
    in_turn[s] = of_leaf[s];
    if (s > 0) continue;
    bool decides = true;
    for (int d = 0; d < rank; ++d)
      decides = decides && of_leaf[0][d] > 0 && (d == 0 || of_leaf[0][d] <= of_leaf[0][d - 1]);
    if (decides) return row_major_strides(shape.data, rank, strides);
  }
  int order[max_rank];
  if (memory_order(shape.data, rank, count, in_turn, order)) dense_strides(shape.data, rank, order, strides);
  else row_major_strides(shape.data, rank, strides);
}

/// What a pass reads, each operand once, and writes.
inline void count_pass(const formula& f, const leaf_ref* leaves, index_t n) noexcept {
  if (!work_log::is_open()) return;
  double bytes = static_cast<double>(n) * f.element_size;
  for (const leaf_ref* l = leaves; l != leaves + f.leaves; ++l) {
    double elements = 1;
    for (int d = 0; d < l->rank; ++d) elements *= l->strides[d] == 0 ? 1. : static_cast<double>(l->shape[d]);
    bytes += elements * l->element_size;
  }
  count_work(0, bytes);
}

SINTER_SHARED storage_ptr run_formula(const formula& f, const void* plan, const any_shape& shape,
                                      const leaf_ref* leaves, index_t* strides) {
  const auto bytes = static_cast<std::size_t>(f.element_size);
  const index_t n = checked_numel("tensor", shape.data, shape.rank, bytes);
  follow_operands(shape, leaves, f.leaves, strides);
  storage_ptr memory = f.allocate(static_cast<std::size_t>(n) * bytes);
  if (n == 0) return memory;
  const logged_work work("forward", f.names, shape.data, shape.rank);
  count_pass(f, leaves, n);
  sink_ref to;
  to.data = memory->data;
  to.element_size = f.element_size;
  std::copy_n(strides, shape.rank, to.strides);
  f.write(plan, shape, leaves, to);
  return memory;
}

inline sink_ref sink_at(const leaf_ref& to, int element_size) {
  sink_ref sink;
  sink.data = to.data;
  sink.element_size = element_size;
  std::copy_n(to.strides, to.rank, sink.strides);
  return sink;
}
SINTER_SHARED void write_formula_to(const formula& f, const void* plan, const leaf_ref* leaves, const leaf_ref& to) {
  if (has_no_elements(to)) return;
  const logged_work work("forward", f.names, to.shape, to.rank);
  index_t n = 1;
  for (int d = 0; d < to.rank; ++d) n *= to.shape[d];
  count_pass(f, leaves, n);
  f.write(plan, {to.shape, to.rank}, leaves, sink_at(to, f.element_size));
}

SINTER_SHARED bool clashes(const leaf_ref* leaves, int count, const leaf_ref& to) {
  for (const leaf_ref* l = leaves; l != leaves + count; ++l) {
    if (!share_memory(*l->memory->get(), *to.memory->get())) continue;
    if (l->data != to.data || l->rank != to.rank || !std::equal(l->shape, l->shape + l->rank, to.shape) ||
        !std::equal(l->strides, l->strides + l->rank, to.strides))
      return true;
  }
  return false;
}

SINTER_SHARED void assign_formula(const formula& f, const void* plan, const any_shape& shape, const leaf_ref* leaves,
                                  const leaf_ref& to) {
  if (!clashes(leaves, f.leaves, to)) return write_formula_to(f, plan, leaves, to);
  index_t strides[max_rank];
  const storage_ptr memory = run_formula(f, plan, shape, leaves, strides);
  if (has_no_elements(to)) return;
  const leaf_ref value{memory->data, shape.data, strides, shape.rank, f.element_size};
  f.copy(nullptr, {to.shape, to.rank}, &value, sink_at(to, f.element_size));
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

// sinter/expr/fuse.hpp: several assignments in one pass over memory.
#pragma once

#include "sinter/expr/evaluate.hpp"

namespace sinter {

namespace detail {

namespace kernel {

/// Several results per element. All are computed before the first is stored, so each reads the values from before.
template <class... Root>
struct roots;

template <class T, class K>
struct root {
  using value_type = T;
  using kernel_type = K;
};

template <>
struct roots<> {
  using leaf_types = type_list<>;
  using output_types = type_list<>;
  static constexpr int leaves = 0;
  static constexpr int outputs = 0;
  static constexpr bool narrow = false;
  template <int L, int O, class M>
  SINTER_WORD void run(const M&) const {}
};

template <class T, class K, class... Rest>
struct roots<root<T, K>, Rest...> {
  using leaf_types = concatenated<typename K::leaf_types, typename roots<Rest...>::leaf_types>;
  using output_types = concatenated<type_list<T>, typename roots<Rest...>::output_types>;
  static constexpr int leaves = K::leaves + roots<Rest...>::leaves;
  static constexpr int outputs = 1 + roots<Rest...>::outputs;
  static constexpr bool narrow = narrow_element<T> || roots<Rest...>::narrow;
  K k;
  roots<Rest...> rest;
  template <int L, int O, class M>
  SINTER_WORD void run(const M& m) const {
    const auto v = k.template eval<L>(m, no_scope{});
    rest.template run<L + K::leaves, O + 1>(m);
    m.template put<O, T>(v);
  }
};

}  // namespace kernel

}  // namespace detail

template <class...>
struct assignments_on_different_devices;
struct fuse_the_assignments_of_each_device_apart;
struct assignment_of_a_tensor_which_only_shares_its_handle;
struct write_plus_0_or_clone_it_outside_of_fuse;

namespace detail {

template <class... A>
constexpr auto find_fuse_mistake() {
  if constexpr (sizeof...(A) > 0 && (is_variable<bare<A>> || ...)) {
    return mistake<updating_a_tracked_variable_in_place, write_through_dot_value_instead>{};
  } else if constexpr (sizeof...(A) > 0 && (is_tensor<bare<A>> || ...)) {
    return mistake<assignment_of_a_tensor_which_only_shares_its_handle, write_plus_0_or_clone_it_outside_of_fuse>{};
  } else if constexpr (sizeof...(A) == 0 || !(is_assignment<A> && ...)) {
    return not_operands{};
  } else if constexpr (!devices_agree<typename A::tensor_type...>) {
    return mistake<assignments_on_different_devices<device_of<typename A::tensor_type>...>,
                   fuse_the_assignments_of_each_device_apart>{};
  } else {
    return fitting<void>{};
  }
}
template <class... A>
using fuse_mistake = decltype(find_fuse_mistake<A...>());

/// How many leaves of e are handles to the storage of `to`.
template <class E, class Tensor>
int count_handles(const E& e, const Tensor& to) {
  const leaves_of<E> leaves(e);
  return static_cast<int>(std::count_if(leaves.at, leaves.at + leaves.count, [&](const leaf_ref& l) {
    return l.memory->get() == access::storage_of(to).get();
  }));
}

/// Where one assignment writes: the memory of its target, or new memory, to which a target that is a tensor is bound
/// afterwards.
template <class A, class Own, class... Ready>
auto fuse_destination(A& a, const Own& own, const Ready&... ready) {
  using Tensor = typename A::tensor_type;
  auto& target = a.target();
  if constexpr (!A::rebinds) {
    return Tensor(target);
  } else {
    const bool reuse = target.defined() && is_replaceable(target, own, 1 + (count_handles(ready, target) + ...)) &&
                       !(needs_temporary(ready, target) || ...);
    return reuse ? Tensor(target) : new_result(own);
  }
}

template <class A, class Tensor>
void fuse_finish(A& a, const Tensor& written) {
  if constexpr (A::rebinds) a.target() = written;
  else note_write(*access::storage_of(written).get());
}

/// The shape that an assignment goes over.
template <class A>
const auto& fuse_space(A& a) {
  if constexpr (A::rebinds) return a.source().shape();
  else return a.target().shape();
}

template <class A, class... Rest>
void check_fuse_shapes(A& first, Rest&... rest) {
  [[maybe_unused]] const auto compare = [&](const auto& shape) {
    if (!(shape == fuse_space(first)))
      refuse<shape_error>({"fuse: assignments of shapes ", fuse_space(first), " and ", shape,
                           " cannot share a pass; all must have one shape"});
  };
  (compare(fuse_space(rest)), ...);
}

template <class E>
auto evaluate_apart(const E& e) {
  return value_of_formula(e, leaves_of<E>(e));
}
template <class A, class Tensor>
void write_back(A& a, const Tensor& value) {
  if constexpr (A::rebinds) a.target() = value;
  else assign_into(a.target(), value);
}

/// The shape that assignments have in common.
template <class Tensor, class... Rest>
shape_upto<Tensor::rank> shape_of_first(const Tensor& to, const Rest&...) {
  return to.shape();
}

/// True if two assignments write to the same memory. They then take effect one after the other.
template <class A, class... Rest>
bool targets_meet(A& first, Rest&... rest) {
  [[maybe_unused]] const auto meets = [&](auto& other) {
    const auto &s = access::storage_of(first.target()), &t = access::storage_of(other.target());
    return s && t && share_memory(*s.get(), *t.get());
  };
  if ((meets(rest) || ... || false)) return true;
  if constexpr (sizeof...(Rest) > 1) return targets_meet(rest...);
  else return false;
}

/// Runs the assignments over their sources without points.
template <class... A, class... Ready>
void run_fuse(const kernel::roots<kernel::root<element_of<typename A::tensor_type>, lowered<false, Ready>>...>& plan,
              A&... a, const Ready&... ready) {
  using Plan = bare<decltype(plan)>;
  using D = typename first_device<typename A::tensor_type...>::type;
  // True if a source reads elements of a target at other indices than those that the pass writes there. All values are
  // then computed before the first is written.
  const auto clashes = [&](auto& one) {
    if constexpr (bare<decltype(one)>::rebinds) return false;
    else return (needs_temporary(ready, one.target()) || ...);
  };
  if ((clashes(a) || ...) || targets_meet(a...)) {
    [&](const auto&... value) { (write_back(a, value), ...); }(evaluate_apart(ready)...);
    return;
  }
  const auto destination = [&](auto& one, const auto& own) {
    const auto to = fuse_destination(one, own, ready...);
    note_before_write<D>(access::storage_of(to));
    return to;
  };
  leaf_ref leaves[Plan::leaves > 0 ? Plan::leaves : 1];
  leaf_ref* next = leaves;
  ((next = list_leaves<true>(ready, next)), ...);
  [&](const auto&... to) {
    const sink_ref sinks[] = {sink_of(to)...};
    const logged_work work("forward", {"fuse"}, shape_of_first(to...).data, shape_of_first(to...).rank);
    backend<D>::map_many(plan, shape_of_first(to...), leaves, sinks);
    (fuse_finish(a, to), ...);
  }(destination(a, ready)...);
}

template <class Root, class... Roots, class E, class... Rest>
kernel::roots<Root, Roots...> chain_plans(const E& e, const Rest&... rest) {
  if constexpr (sizeof...(Roots) == 0) return {lower<false>(e), {}};
  else return {lower<false>(e), chain_plans<Roots...>(rest...)};
}

}  // namespace detail

/// Runs several assignments of one shape and device in one pass. Every right side reads the values from before it;
/// where two write to the same elements the later one stays.
///
///     fuse(m = beta * m + (1 - beta) * g, w -= lr * (beta * m + (1 - beta) * g));
template <class... A>
  requires(detail::is_fitting<detail::fuse_mistake<A...>>)
void fuse(A&&... a) {
  (a.take_over(), ...);
  detail::check_fuse_shapes(a...);
  [&](const auto&... ready) {
    detail::run_fuse<A...>(
        detail::chain_plans<detail::kernel::root<element_of<typename A::tensor_type>,
                                                 detail::lowered<false, detail::bare<decltype(ready)>>>...>(ready...),
        a..., ready...);
  }(detail::materialise(a.source())...);
}

template <class... A, class Problem = typename detail::fuse_mistake<A...>::problem,
          class Fix = typename detail::fuse_mistake<A...>::fix>
void fuse(A&&...) = delete;

}  // namespace sinter

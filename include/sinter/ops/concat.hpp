// sinter/ops/concat.hpp: concat and stack, several tensors as one.
#pragma once

#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/statement.hpp"

namespace sinter {

template <int...>
struct operands_of_different_ranks;
template <class...>
struct list_of_parts_which_are_not_tensors_of_one_type;
struct pass_the_axis_first_and_then_each_part;
struct value_that_let_names_in_a_kernel_of_its_own;
struct evaluate_it_before_let;

namespace detail {

/// What is joined, and where along the axis.
class joined_parts {
 public:
  joined_parts();
  joined_parts(const joined_parts&) = delete;
  joined_parts& operator=(const joined_parts&) = delete;
  ~joined_parts();

  /// Adds a part, which takes so much of the axis.
  void add(const state_ptr& source, index_t extent);
  const state_ptr* sources(int& count) const;
  /// Where part i starts; behind the last part it is the end.
  index_t begin(int i) const;

 private:
  std::vector<state_ptr> sources_;
  std::vector<index_t> begins_;
};

#if SINTER_DEFINES

SINTER_SHARED joined_parts::joined_parts() : begins_{0} {}
SINTER_SHARED joined_parts::~joined_parts() = default;
SINTER_SHARED void joined_parts::add(const state_ptr& source, index_t extent) {
  sources_.push_back(source);
  begins_.push_back(begins_.back() + extent);
}
SINTER_SHARED const state_ptr* joined_parts::sources(int& count) const {
  count = static_cast<int>(sources_.size());
  return sources_.data();
}
SINTER_SHARED index_t joined_parts::begin(int i) const { return begins_[static_cast<std::size_t>(i)]; }

#endif  // SINTER_DEFINES

/// Backward of concat and stack: each source gets its part of the gradient.
template <class T, int R, int SourceR, device D>
struct concat_backward final : tape_entry {
  joined_parts parts;
  int axis = 0;

  const state_ptr* inputs(int& count) const override { return parts.sources(count); }
  void release() override {}
  void backward(grad_state& y) override {
    const auto& g = static_cast<typed_state<T, R, D>&>(y).grad;
    int count = 0;
    const state_ptr* const sources = parts.sources(count);
    for (int i = 0; i < count; ++i) {
      if (!sources[i]) continue;
      if constexpr (R == SourceR) add_gradient(sources[i], g.slice(axis, parts.begin(i), parts.begin(i + 1)));
      else add_gradient(sources[i], g.select(axis, parts.begin(i)));
    }
  }
};

/// Joins evaluated parts; Stack says whether the axis is new.
template <bool Stack, class Part>
auto join(const char* op, index_t axis, const std::vector<Part>& parts) {
  using T = element_of<Part>;
  using D = device_of<Part>;
  constexpr int R = Part::rank + (Stack ? 1 : 0);
  if (parts.empty()) refuse<shape_error>({op, ": there are no tensors"});
  const int a = checked_axis(op, axis, R);
  const auto extent = [&](const Part& p) { return Stack ? index_t{1} : p.shape()[a]; };
  extents<R> shape;
  index_t total = 0;
  for (const Part& p : parts) {
    check_defined(op, p);
    bool fits = true;
    for (int d = 0; d < Part::rank; ++d) fits = fits && ((!Stack && d == a) || p.shape()[d] == parts[0].shape()[d]);
    if (!fits)
      refuse<shape_error>({op, ": shapes ", parts[0].shape(), " and ", p.shape(),
                           Stack ? std::string(" differ") : joined({" differ outside axis ", a})});
    total += extent(p);
  }
  for (int d = 0; d < Part::rank; ++d) shape[Stack && d >= a ? d + 1 : d] = parts[0].shape()[d];
  shape[a] = total;
  const auto y = tensor<T, R, D>::uninitialized(shape);
  index_t begin = 0;
  for (const Part& p : parts) {
    const auto& part = [&]() -> const auto& {
      if constexpr (is_variable<Part>) return access::value_of(p);
      else return p;
    }();
    if constexpr (Stack) write(part, y.select(a, begin));
    else write(part, y.slice(a, begin, begin + extent(p)));
    begin += extent(p);
  }
  if constexpr (is_variable<Part>) {
    static_assert(Part::order < 2,
                  "sinter: concat and stack have no second derivative; use them on variables of order 1");
    auto node = make_owned<concat_backward<T, R, Part::rank, D>>();
    bool any = false;
    for (const Part& p : parts) {
      node->parts.add(access::state_of(p), extent(p));
      any = any || access::state_of(p);
    }
    if (!any || !recording()) return unrecorded<1>(y);
    node->name = op;
    node->axis = a;
    return produced<1>(y, std::move(node));
  } else {
    return y;
  }
}

template <class... E>
constexpr auto find_join_mistake() {
  if constexpr (sizeof...(E) == 0 || !(expression<E> && ...)) {
    return no_operands<E...>{};
  } else if constexpr (!is_fitting<operand_check<E...>>) {
    return operand_check<E...>{};
  } else if constexpr ((reads_name<E> || ...)) {
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  } else if constexpr (!((rank_of<E> == larger(E::rank...)) && ...)) {
    return mistake<operands_of_different_ranks<rank_of<E>...>, use_reshape_squeeze_or_unsqueeze>{};
  } else {
    return fitting<literals_type<E...>>{};
  }
}
template <class... E>
using join_mistake = decltype(find_join_mistake<bare<E>...>());

template <class... E>
constexpr auto find_list_mistake() {
  if constexpr (is_fitting<join_mistake<E...>>)
    return mistake<list_of_parts_which_are_not_tensors_of_one_type<E...>, pass_the_axis_first_and_then_each_part>{};
  else return join_mistake<E...>{};
}
/// What {a, b} makes where it is no list of tensors or variables of one type; it is rejected.
struct mixed_list {
  template <class A, class B, class... More,
            class Problem = typename decltype(find_list_mistake<bare<A>, bare<B>, bare<More>...>())::problem,
            class Fix = typename decltype(find_list_mistake<bare<A>, bare<B>, bare<More>...>())::fix>
  mixed_list(A&&, B&&, More&&...) = delete;
};

/// The type of rank R that holds any of E: variables where one is tracked.
template <int R, class... E>
using common_value = typename result_of_point<typename literal_target<E...>::type, R,
                                              typename first_device<bare<E>...>::type, larger(bare<E>::order...)>::type;
template <class... E>
using part_of = common_value<larger(bare<E>::rank...), E...>;

}  // namespace detail

/// Tensors one after another along an existing axis: (…,n,…) and (…,m,…) => (…,n+m,…). Runs at once. Also of a vector,
/// concat(axis, parts), and of a list, concat({a, b}, axis = 0).
/// Derivative: each gets its part of g. Errors: shape_error when other extents differ.
///
///     tensor both = concat(0, train, test);
template <class... E>
  requires(detail::is_fitting<detail::join_mistake<E...>>)
auto concat(detail::whole axis, const E&... parts) {
  using Part = detail::part_of<E...>;
  return detail::join<false>("concat", axis, std::vector<Part>{detail::value_as<Part>(parts)...});
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto concat(detail::whole axis, const std::vector<Part>& parts) {
  return detail::join<false>("concat", axis, parts);
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto concat(std::initializer_list<Part> parts, detail::whole axis = 0) {
  return detail::join<false>("concat", axis, std::vector<Part>(parts));
}

/// concat({a, b}, axis).
///
///     tensor both = cat({train, test}, 0);
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto cat(std::initializer_list<Part> parts, detail::whole axis = 0) {
  return concat(parts, axis);
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto cat(const std::vector<Part>& parts, detail::whole axis = 0) {
  return concat(axis, parts);
}

struct parts_that_are_not_in_braces;
struct write_the_parts_in_braces_and_then_the_axis;
template <expression A, expression B, class... More, class Problem = parts_that_are_not_in_braces,
          class Fix = write_the_parts_in_braces_and_then_the_axis>
void cat(A&&, B&&, More&&...) = delete;

/// Tensors of one shape along a new axis: k of (n,m) at axis 0 => (k,n,m). Runs at once. Also of a vector,
/// stack(axis, parts), and of a list, stack({a, b}, axis = 0).
/// Derivative: each gets its part of g. Errors: shape_error when shapes differ.
///
///     tensor batch = stack(0, image_a, image_b, image_c);
template <class... E>
  requires(detail::is_fitting<detail::join_mistake<E...>>)
auto stack(detail::whole axis, const E&... parts) {
  using Part = detail::part_of<E...>;
  return detail::join<true>("stack", axis, std::vector<Part>{detail::value_as<Part>(parts)...});
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto stack(detail::whole axis, const std::vector<Part>& parts) {
  return detail::join<true>("stack", axis, parts);
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto stack(const std::vector<Part>& parts, detail::whole axis = 0) {
  return detail::join<true>("stack", axis, parts);
}
template <class Part>
  requires(detail::is_tensor<Part> || detail::is_variable<Part>)
auto stack(std::initializer_list<Part> parts, detail::whole axis = 0) {
  return detail::join<true>("stack", axis, std::vector<Part>(parts));
}

template <class... E, class Problem = typename detail::join_mistake<E...>::problem,
          class Fix = typename detail::join_mistake<E...>::fix>
void concat(index_t, E&&...) = delete;
template <class... E, class Problem = typename detail::join_mistake<E...>::problem,
          class Fix = typename detail::join_mistake<E...>::fix>
void stack(index_t, E&&...) = delete;
void concat(detail::mixed_list, detail::whole axis = 0);
void stack(detail::mixed_list, detail::whole axis = 0);

}  // namespace sinter

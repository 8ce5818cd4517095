// sinter/parallel/parts.hpp: values that belong to the parts of a computation, one for each device.
#pragma once

#include <cstddef>
#include <utility>

#include "sinter/grad/variable.hpp"
#include "sinter/parallel/even_parts.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct a_device_is_listed_twice_in;
struct name_each_device_once;

namespace detail {

template <std::size_t I, class T>
struct part_slot {
  T value;
};

template <class Index, class... T>
struct part_slots;
template <std::size_t... I, class... T>
struct part_slots<std::index_sequence<I...>, T...> : part_slot<I, T>... {
  part_slots() = default;
  explicit part_slots(T... value) : part_slot<I, T>{std::move(value)}... {}
};

template <std::size_t I, class T>
T part_type(const part_slot<I, T>*);
/// Number I of T.
template <std::size_t I, class... T>
using type_of_part =
    decltype(part_type<I>(static_cast<const part_slots<std::index_sequence_for<T...>, T...>*>(nullptr)));

/// One T for each part.
template <class... T>
class parts : part_slots<std::index_sequence_for<T...>, T...> {
  using base = part_slots<std::index_sequence_for<T...>, T...>;

 public:
  static constexpr int count = sizeof...(T);
  parts() = default;
  explicit parts(T... value)
    requires(sizeof...(T) > 0)
      : base(std::move(value)...) {}

  template <std::size_t I>
  auto& at() {
    return slot<I>(*this).value;
  }
  template <std::size_t I>
  const auto& at() const {
    return slot<I>(*this).value;
  }

 private:
  template <std::size_t I, class T0>
  static part_slot<I, T0>& slot(part_slot<I, T0>& s) {
    return s;
  }
  template <std::size_t I, class T0>
  static const part_slot<I, T0>& slot(const part_slot<I, T0>& s) {
    return s;
  }
};

/// Calls f with number `part` of Count as a type: f(std::integral_constant<std::size_t, I>).
template <int Count, class F>
void with_part(int part, const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    static_cast<void>(((part == static_cast<int>(I) && (f(std::integral_constant<std::size_t, I>{}), true)) || ...));
  }(std::make_index_sequence<std::size_t{Count}>{});
}
/// The same for each part, one after the other.
template <int Count, class F>
void each_part(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::integral_constant<std::size_t, I>{}), ...);
  }(std::make_index_sequence<std::size_t{Count}>{});
}

template <class... D>
inline constexpr bool all_different = ((times_listed<D, D...> == 1) && ...);

/// The samples of a part. The first part runs in any case, so that the shape of a result is known.
struct sample_range {
  index_t begin = 0, end = 0;
  bool runs = false;
  index_t size() const { return end - begin; }
};
/// Part number `part` of n samples; see begin_of_part().
inline sample_range samples_of_part(index_t n, int parts, int part) {
  const index_t begin = begin_of_part(n, parts, part), end = begin_of_part(n, parts, index_t{part} + 1);
  return {begin, end, part == 0 || end > begin};
}

/// A tensor or variable type on another device.
template <class X, class D>
struct on_device_type;
template <class T, auto S, class From, class D>
struct on_device_type<tensor<T, S, From>, D> {
  using type = tensor<T, S, D>;
};
template <class T, auto S, class From, int Order, class D>
struct on_device_type<variable<T, S, From, Order>, D> {
  using type = variable<T, S, D, Order>;
};
template <class X, class D>
using moved_type = typename on_device_type<X, D>::type;

}  // namespace detail
}  // namespace sinter

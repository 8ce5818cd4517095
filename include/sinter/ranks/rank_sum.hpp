// sinter/ranks/rank_sum.hpp: elements of several ranks joined in the order of the ranks, by element type at run
// time.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "sinter/core/host_tensor.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter::detail {

/// b joined to a.
template <class A>
A joined_elements(A a, A b, bool is_max) {
  if (!is_max) {
    // unsigned, where a sum does not overflow
    if constexpr (std::is_integral_v<A>)
      return static_cast<A>(static_cast<std::make_unsigned_t<A>>(a) + static_cast<std::make_unsigned_t<A>>(b));
    else return a + b;
  }
  if constexpr (std::is_floating_point_v<A>) return b > a || b != b ? b : a;
  else return b > a ? b : a;
}

/// Calls f(T{}) with the element type. Errors: value_error for one that cannot be summed.
template <class F>
void with_summed_element(element_kind kind, F f) {
  with_element(kind, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (element<T>) {
      if constexpr (can_be_summed<T>) return f(zero);
    }
    refuse<value_error>({"communicator: elements of type ", element_name(kind), " cannot be added"});
  });
}

/// to[i] = parts[0][first + i] joined to parts[1][first + i], ... for i < n: in this order, so that the result is the
/// same each time; half and bfloat16 in float, rounded once. `to` may be one of the parts.
inline void join_in_rank_order(element_kind kind, bool is_max, std::span<const std::byte* const> parts,
                               std::size_t first, std::size_t n, std::byte* to) {
  with_summed_element(kind, [&](auto zero) {
    using T = decltype(zero);
    using A = compute_type<T>;
    constexpr std::size_t block = 512;  // elements at a time, so that the loop over ranks is the outer one
    A sums[block];
    for (std::size_t i = 0; i < n; i += block) {
      const std::size_t m = n - i < block ? n - i : block;
      for (std::size_t r = 0; r < parts.size(); ++r) {
        T values[block];
        std::memcpy(values, parts[r] + (first + i) * sizeof(T), m * sizeof(T));
        for (std::size_t j = 0; j < m; ++j)
          sums[j] = r == 0 ? static_cast<A>(values[j]) : joined_elements<A>(sums[j], static_cast<A>(values[j]), is_max);
      }
      T result[block];
      for (std::size_t j = 0; j < m; ++j) result[j] = static_cast<T>(sums[j]);
      std::memcpy(to + i * sizeof(T), result, m * sizeof(T));
    }
  });
}

/// The elements of part r, where n elements are cut into `ranks` parts that differ by one element at most.
struct part_of_rank {
  part_of_rank(std::size_t n, int ranks, int r)
      : begin(n * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks)),
        end(n * static_cast<std::size_t>(r + 1) / static_cast<std::size_t>(ranks)) {}
  std::size_t size() const { return end - begin; }
  std::size_t begin, end;
};

}  // namespace sinter::detail

// sinter/ops/indices.hpp: what ops ask of indices that a tensor holds: that they are in range, and sums at them.
#pragma once

#include "sinter/expr/backend.hpp"

namespace sinter {

namespace detail {

/// What is known of the indices along a line: in runs, equal ones are neighbours.
enum class index_order { any, runs };

}  // namespace detail

namespace ops {

/// Are integers in range? kernels<index_check, D>::run(asked, values, n, extent) throws index_error unless all n values
/// lie in [0, extent). A GPU looks without being waited for: the error comes where the host next waits for it, or asks
/// for another check.
struct index_check {
  template <device D>
  static constexpr bool has_kernels_on = true;

  const char* op;    ///< literals, which name in the error what was called, and what an integer is
  const char* what;  ///< "index", or "label"
};

/// What becomes of an element, `to`, when another is written at its index.
namespace scatter_rule {
struct replace {
  template <class T, class U>
  SINTER_WORD static void apply(T& to, U& from) {
    to = static_cast<T>(from);
  }
};
struct add {
  template <class T, class U>
  SINTER_WORD static void apply(T& to, U& from) {
    to = static_cast<T>(to + static_cast<T>(from));
  }
};
struct multiply {
  template <class T, class U>
  SINTER_WORD static void apply(T& to, U& from) {
    to = static_cast<T>(to * static_cast<T>(from));
  }
};
/// The same, with the product so far in place of the factor.
struct multiply_and_tell {
  template <class T>
  SINTER_WORD static void apply(T& to, T& from) {
    const T before = to;
    to = before * from;
    from = before;
  }
};
/// NaN where there is one.
struct largest {
  template <class T>
  SINTER_WORD static void apply(T& to, T& from) {
    if (from > to || from != from) to = from;
  }
};
struct smallest {
  template <class T>
  SINTER_WORD static void apply(T& to, T& from) {
    if (from < to || from != from) to = from;
  }
};
}  // namespace scatter_rule

/// y[c] is written to x[c with coordinate `axis` = index[c]] by a rule, in order along the axis:
/// kernels<scatter_by<Rule>, D>::run(op, x, index, y). On the host y may have elements narrower than those of x that it
/// is added to.
template <class Rule>
struct scatter_by {
  template <device D>
  static constexpr bool has_kernels_on = true;

  int axis;
  sinter::detail::index_order order = sinter::detail::index_order::any;
};
using scatter_add = scatter_by<scatter_rule::add>;

}  // namespace ops

namespace detail {

/// The error of an index_check.
[[noreturn]] SINTER_SHARED_COLD void refuse_index(const ops::index_check& asked, std::int64_t value, index_t position,
                                                  index_t extent, const std::string& remark = {});
#if SINTER_DEFINES
SINTER_SHARED_COLD void refuse_index(const ops::index_check& asked, std::int64_t value, index_t position,
                                     index_t extent, const std::string& remark) {
  refuse<index_error>({asked.op, ": ", asked.what, " ", value, " at position ", position, " is out of range [0, ",
                       extent, ")", remark});
}
#endif

/// Errors: index_error unless all elements of the dense tensor lie in [0, extent); see ops::index_check.
template <int R, device D>
void check_indices(const ops::index_check& asked, const tensor<std::int64_t, R, D>& values, index_t extent) {
  kernels<ops::index_check, D>::run(asked, access::data(values), values.numel(), extent);
}

}  // namespace detail
}  // namespace sinter

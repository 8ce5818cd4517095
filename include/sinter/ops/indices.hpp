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

/// x[c with coordinate `axis` = index[c]] += y[c], in order along the axis: kernels<scatter_add, D>::run(op, x, index,
/// y). On the host the elements of y may be narrower than those of x.
struct scatter_add {
  template <device D>
  static constexpr bool has_kernels_on = true;

  int axis;
  sinter::detail::index_order order = sinter::detail::index_order::any;
};

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

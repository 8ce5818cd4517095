// tests/compile_fail/row_op_without_reverse.cpp: an op along an axis without a derivative.
// FIRST-LINE: a row op needs its derivative, 'reverse\(r\)'
// LINES-GCC: 14
// LINES-CLANG: 45
#include <sinter/sinter.hpp>

namespace sinter {
namespace ops {

struct centred_op : row_op {
  static constexpr const char* name = "centred";
  using row_op::row_op;

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    const auto x = r.keep(r.x());
    return r.finish(x, {.shift = mean_of(r, x)});
  }
#ifndef SINTER_MUST_FAIL
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    const auto mean = r.sum(r.gradient()) / r.count();
    r.put(over(r.gradient(), [=](auto g) SINTER_INLINE_LAMBDA { return g - mean; }));
  }
#endif
};

}  // namespace ops

inline tensor<float, 1> centred(const tensor<float, 1>& x) { return detail::make_kernel(ops::centred_op(0), x); }

}  // namespace sinter

// tests/compile_fail/kernel_op_without_mistake.cpp: an op with kernels of its own that does not check types.
// FIRST-LINE: a kernel op needs its check of types, 'mistake'
#include <sinter/sinter.hpp>

namespace sinter {
namespace ops {

struct turn_op : kernel_op {
  static constexpr const char* name = "turn";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <int R>
  const extents<R>& shape(const extents<R>& x) const {
    return x;
  }
#ifndef SINTER_MUST_FAIL
  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<1, max_rank, X>();
  }
#endif
};

}  // namespace ops

SINTER_KERNEL_REJECTIONS(turn, ops::turn_op)

}  // namespace sinter

// tests/compile_fail/elementwise_op_without_grad_uses.cpp: a derivative that does not say what it reads.
// FIRST-LINE: an elementwise op needs both 'grad' and 'grad_uses', or neither
#include <sinter/sinter.hpp>

namespace sinter {
namespace ops {

struct twice_op : real_op {
  static constexpr const char* name = "twice";
#ifndef SINTER_MUST_FAIL
  static constexpr unsigned grad_uses[1] = {uses::nothing};
#endif
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x + x;
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return g + g;
  }
};

}  // namespace ops

SINTER_UNARY_FUNCTION(twice, ops::twice_op)

}  // namespace sinter

// tests/compile_fail/elementwise_op_without_formula.cpp: a function of an op that has no apply().
// FIRST-LINE: an elementwise op needs its formula, 'apply'
#include <sinter/sinter.hpp>

namespace sinter {
namespace ops {

struct twice_op : number_op {
  static constexpr const char* name = "twice";
#ifndef SINTER_MUST_FAIL
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x + x;
  }
#endif
};

}  // namespace ops

SINTER_UNARY_FUNCTION(twice, ops::twice_op)

}  // namespace sinter

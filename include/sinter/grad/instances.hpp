// sinter/grad/instances.hpp: variables of common types, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/grad/view.hpp"

#if SINTER_COMPILED
namespace sinter {

#define SINTER_INSTANCES_OF(R)                                                                                \
  SINTER_INSTANCE_OF_CLASS(class variable<float, R>)                                                          \
  SINTER_INSTANCE struct detail::typed_state<float, R, cpu>;                                                  \
  SINTER_INSTANCE detail::grad_state* detail::make_state_like<tensor<float, R>>(const detail::leaf_ref&);     \
  SINTER_INSTANCE class detail::shared_slot<variable<float, R>>;                                              \
  SINTER_INSTANCE class detail::shared_slot<tensor<float, R>>;                                                \
  SINTER_INSTANCE variable<float, R> detail::new_recorded<1, float, R, cpu>(                                  \
      const detail::formula&, const void*, const detail::formula_derivative&, const void*, const extents<R>&, \
      const detail::leaf_ref*);
SINTER_INSTANCES_OF(0)
SINTER_INSTANCES_OF(1)
SINTER_INSTANCES_OF(2)
SINTER_INSTANCES_OF(3)
SINTER_INSTANCES_OF(4)
#undef SINTER_INSTANCES_OF

// Of flatten().
SINTER_INSTANCE struct detail::reshape_backward<float, 2, 3, cpu>;
SINTER_INSTANCE struct detail::reshape_backward<float, 2, 4, cpu>;

}  // namespace sinter
#endif

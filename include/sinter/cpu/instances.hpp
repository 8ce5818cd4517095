// sinter/cpu/instances.hpp: kernels of common types, which a program with sinter::compiled holds once.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/convolution.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/cpu/variants.hpp"

#if SINTER_COMPILED
namespace sinter {

namespace cpu_impl {

SINTER_INSTANCE void run_map_of<8>(const map_call&, const any_shape&, thread_pool&);
SINTER_INSTANCE void run_map_of<max_operands>(const map_call&, const any_shape&, thread_pool&);

#define SINTER_INSTANCES_OF(T)                                                                                         \
  SINTER_INSTANCE void run_cross_entropy<T>(loop&, bool, const std::int64_t*, T*, T*, index_t, index_t, thread_pool&); \
  SINTER_INSTANCE void reverse_cross_entropy<T>(loop&, bool, const std::int64_t*, const T*, const T*, T*, index_t,     \
                                                index_t, bool, thread_pool&);                                          \
  SINTER_INSTANCE void gather<T>(const gather_shape&, const T*, const std::int64_t*, T*, thread_pool&);                \
  SINTER_INSTANCE void scatter_add<T, T>(const gather_shape&, T*, const std::int64_t*, const T*, thread_pool&);
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(double)
#undef SINTER_INSTANCES_OF
SINTER_INSTANCE void gather<std::int64_t>(const gather_shape&, const std::int64_t*, const std::int64_t*, std::int64_t*,
                                          thread_pool&);

}  // namespace cpu_impl

namespace detail {

// Reductions of plain tensors.
#define SINTER_INSTANCES_OF(reducer, T)                                                                         \
  SINTER_INSTANCE void backend<cpu>::reduce<reducer, T, kernel::leaf<T, false>>(                                \
      const kernel::leaf<T, false>&, const any_shape&, const leaf_ref*, const bool*, typename reducer::result*, \
      const cpu_impl::epilogue*);
SINTER_INSTANCES_OF(sum_reducer<float>, float)
SINTER_INSTANCES_OF(sum_reducer<double>, double)
#undef SINTER_INSTANCES_OF

}  // namespace detail
}  // namespace sinter
#endif

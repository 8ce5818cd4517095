// sinter/cpu/instances.hpp: kernels of common types, which a program with sinter::compiled holds once.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/index.hpp"
#include "sinter/cpu/variants.hpp"

#if SINTER_COMPILED
namespace sinter::cpu_impl {

SINTER_INSTANCE void run_map_of<8>(const map_call&, const any_shape&, thread_pool&);
SINTER_INSTANCE void run_map_of<max_operands>(const map_call&, const any_shape&, thread_pool&);

#define SINTER_INSTANCES_OF(T)                                                                          \
  SINTER_INSTANCE void gather<T>(const gather_shape&, const T*, const std::int64_t*, T*, thread_pool&); \
  SINTER_INSTANCE void scatter_add<T, T>(const gather_shape&, T*, const std::int64_t*, const T*, thread_pool&);
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(double)
#undef SINTER_INSTANCES_OF
SINTER_INSTANCE void gather<std::int64_t>(const gather_shape&, const std::int64_t*, const std::int64_t*, std::int64_t*,
                                          thread_pool&);

}  // namespace sinter::cpu_impl
#endif

// sinter/cpu/instances.hpp: kernels of common types, which a program with sinter::compiled holds once.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/embedding.hpp"
#include "sinter/cpu/index.hpp"
#include "sinter/cpu/variants.hpp"
#include "sinter/grad/statement.hpp"

#if SINTER_COMPILED
namespace sinter::detail {

// Copies, fills and sums.
#define SINTER_INSTANCES_OF(T)                                                                                    \
  SINTER_INSTANCE void write_formula<kernel::leaf<T, false>, T, max_rank, cpu>(const void*, const any_shape&,     \
                                                                               const leaf_ref*, const sink_ref&); \
  SINTER_INSTANCE void write_formula<kernel::constant<T>, T, max_rank, cpu>(const void*, const any_shape&,        \
                                                                            const leaf_ref*, const sink_ref&);
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(double)
SINTER_INSTANCES_OF(std::int64_t)
#undef SINTER_INSTANCES_OF
SINTER_INSTANCE void reverse_formula<kernel::leaf<float, true>, float, max_rank, false, cpu>(const void*,
                                                                                             const any_shape&,
                                                                                             const leaf_ref*,
                                                                                             const sink_ref*);

}  // namespace sinter::detail

namespace sinter::cpu_impl {

SINTER_INSTANCE void run_map_of<8>(const map_call&, const any_shape&, thread_pool&);
SINTER_INSTANCE void run_map_of<max_operands>(const map_call&, const any_shape&, thread_pool&);

#define SINTER_INSTANCES_OF(T)                                                                          \
  SINTER_INSTANCE void gather<T>(const gather_shape&, const T*, const std::int64_t*, T*, thread_pool&); \
  SINTER_INSTANCE void scatter_add<T, T>(const gather_shape&, T*, const std::int64_t*, const T*, thread_pool&);
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(double)
#undef SINTER_INSTANCES_OF
SINTER_INSTANCE bool renorm<float>(const ops::renorm_op&, const table_view<float>&, const id_places&, thread_pool&);
SINTER_INSTANCE void gather<std::int64_t>(const gather_shape&, const std::int64_t*, const std::int64_t*, std::int64_t*,
                                          thread_pool&);

}  // namespace sinter::cpu_impl

namespace sinter {

#define SINTER_INSTANCE_OF(...)                                                                                     \
  SINTER_INSTANCE __VA_ARGS__ index_select<__VA_ARGS__, tensor<std::int64_t, 1>>(const __VA_ARGS__&, detail::whole, \
                                                                                 const tensor<std::int64_t, 1>&);
SINTER_INSTANCE_OF(tensor<float, 2>)
SINTER_INSTANCE_OF(tensor<float, 4>)
SINTER_INSTANCE_OF(tensor<std::int64_t, 1>)
#undef SINTER_INSTANCE_OF

}  // namespace sinter
#endif

// sinter/core/instances.hpp: tensors of common types, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/core/arena.hpp"
#include "sinter/core/create.hpp"
#include "sinter/core/tensor.hpp"

#if SINTER_COMPILED
namespace sinter {

// Every file makes the classes that stand here, used or not: so here are those that most files use.
#define SINTER_INSTANCES_OF(T)                 \
  SINTER_INSTANCE_OF_CLASS(class tensor<T, 0>) \
  SINTER_INSTANCE_OF_CLASS(class tensor<T, 1>) \
  SINTER_INSTANCE_OF_CLASS(class tensor<T, 2>)
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(std::int64_t)
SINTER_INSTANCE_OF_CLASS(class tensor<float, 3>)
SINTER_INSTANCE_OF_CLASS(class tensor<float, 4>)
SINTER_INSTANCE_OF_CLASS(class tensor<std::uint8_t, 4>)
#undef SINTER_INSTANCES_OF

#define SINTER_INSTANCES_OF(T)                                                        \
  SINTER_INSTANCE tensor<T, 0> full<T, cpu, 0>(const extents<0>&, detail::number<T>); \
  SINTER_INSTANCE tensor<T, 1> full<T, cpu, 1>(const extents<1>&, detail::number<T>); \
  SINTER_INSTANCE tensor<T, 2> full<T, cpu, 2>(const extents<2>&, detail::number<T>); \
  SINTER_INSTANCE tensor<T, 3> full<T, cpu, 3>(const extents<3>&, detail::number<T>); \
  SINTER_INSTANCE tensor<T, 4> full<T, cpu, 4>(const extents<4>&, detail::number<T>);
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(std::int64_t)
#undef SINTER_INSTANCES_OF

namespace detail {
SINTER_INSTANCE class caching_arena<host_memory>;
SINTER_INSTANCE class block<caching_arena<host_memory>>;
SINTER_INSTANCE caching_arena<host_memory>& host_arena<cpu>();
SINTER_INSTANCE storage_ptr allocate_on_host<cpu>(std::size_t);
SINTER_INSTANCE void return_block<cpu>(storage*) noexcept;
SINTER_INSTANCE storage_ptr allocate_dense<cpu>(const index_t*, int, std::size_t, index_t*);
SINTER_INSTANCE storage_ptr copy_of_memory<cpu>(const void*, std::size_t);
}  // namespace detail

}  // namespace sinter
#endif

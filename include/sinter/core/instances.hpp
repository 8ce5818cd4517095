// sinter/core/instances.hpp: tensors of common types, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/core/arena.hpp"
#include "sinter/core/tensor.hpp"

#if SINTER_COMPILED
namespace sinter {

#define SINTER_INSTANCES_OF(T)        \
  SINTER_INSTANCE class tensor<T, 0>; \
  SINTER_INSTANCE class tensor<T, 1>; \
  SINTER_INSTANCE class tensor<T, 2>; \
  SINTER_INSTANCE class tensor<T, 3>; \
  SINTER_INSTANCE class tensor<T, 4>;
SINTER_INSTANCES_OF(float)
SINTER_INSTANCES_OF(double)
SINTER_INSTANCES_OF(std::int64_t)
SINTER_INSTANCES_OF(std::uint8_t)
#undef SINTER_INSTANCES_OF

namespace detail {
SINTER_INSTANCE class caching_arena<host_memory>;
}  // namespace detail

}  // namespace sinter
#endif

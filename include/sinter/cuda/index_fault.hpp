// sinter/cuda/index_fault.hpp: what a GPU tells the host of an index that is out of range.
#pragma once

#include <utility>

#include "sinter/cuda/space.hpp"
#include "sinter/ops/indices.hpp"

namespace sinter::cuda_impl {

/// The first index outside its range that a GPU has met and the host not yet reported, in memory that both see.
struct index_fault {
  ops::index_check by{};  ///< of no op: there is none
  std::int64_t value = 0;
  index_t position = 0;
  index_t extent = 0;
};

/// Throws index_error if D has met an index out of its range. Does not wait for work that is still to run, but, where
/// there is a fault, for what writes it.
template <device D>
void report_fault() {
  index_fault* const fault = gpu<D>::fault();
  if (static_cast<const char* volatile&>(fault->by.op) == nullptr) return;
  gpu<D>::synchronize();
  const index_fault found = std::exchange(*fault, index_fault());
  if (found.by.op == nullptr) return;  // another thread was here first
  sinter::detail::refuse_index(found.by, found.value, found.position, found.extent,
                               "; " + device_name<D>() + " met it in a statement before this one");
}

}  // namespace sinter::cuda_impl

// sinter/core/declare.hpp: devices as types and the traits users check them with, and tensors by name.
#pragma once

#include "sinter/core/types.hpp"

namespace sinter {

/// All of host memory and all worker threads.
struct cpu {};

/// NUMA node I with its own arena and worker pool: a device of its own even where the machine has a single node.
template <int I>
struct numa {
  static_assert(I >= 0, "sinter: a NUMA node number is not negative");
};

/// The GPU with ordinal I.
template <int I>
struct cuda {
  static_assert(I >= 0, "sinter: a GPU ordinal is not negative");
};

/// Another name of `cuda<I>`, for files that also see CUDA's own namespace `::cuda` (Thrust and CUB declare it): there
/// `using namespace sinter;` leaves `cuda<0>` ambiguous.
template <int I>
using gpu = cuda<I>;

/// "Belongs to no device": what literals in an expression have.
struct any_device {};

namespace detail {

template <class D>
struct device_info {
  static constexpr bool is_device = false, is_cpu = false, is_cuda = false;
  static constexpr int ordinal = -1;
};
template <>
struct device_info<cpu> {
  static constexpr bool is_device = true, is_cpu = true, is_cuda = false;
  static constexpr int ordinal = 0;
};
template <int I>
struct device_info<numa<I>> {
  static constexpr bool is_device = true, is_cpu = true, is_cuda = false;
  static constexpr int ordinal = I;
};
template <int I>
struct device_info<cuda<I>> {
  static constexpr bool is_device = true, is_cpu = false, is_cuda = true;
  static constexpr int ordinal = I;
};

}  // namespace detail

/// `cpu`, `numa<I>` or `cuda<I>`.
template <class D>
concept device = detail::device_info<D>::is_device;

/// True for the devices whose memory the host reads directly: `cpu` and every `numa<I>`.
template <class D>
inline constexpr bool is_cpu_v = detail::device_info<D>::is_cpu;

/// True for every `cuda<I>`.
template <class D>
inline constexpr bool is_cuda_v = detail::device_info<D>::is_cuda;

/// I of `cuda<I>` and `numa<I>`; 0 for `cpu`.
template <device D>
inline constexpr int device_ordinal_v = detail::device_info<D>::ordinal;

template <class T, auto Shape, device D = cpu>
class tensor;
template <class T, auto Shape, device D = cpu, int Order = 1>
class variable;

}  // namespace sinter

// sinter/cpu/kept_kernels.hpp: the kernels that a prepared model brings along.
#pragma once

#include "sinter/cpu/variants.hpp"

namespace sinter::detail {

/// A template, so that only files that prepare a model make the kernels.
template <class Host>
inline constexpr kept_kernels kept_kernels_of{
    [](const void* args, void* pool, bool of_doubles) {
      auto& threads = *static_cast<cpu_impl::thread_pool*>(pool);
      bool done = false;
      if (of_doubles) cpu_impl::multiply_kept(*static_cast<const cpu_impl::gemm_args<double>*>(args), threads, done);
      else cpu_impl::multiply_kept(*static_cast<const cpu_impl::gemm_args<float>*>(args), threads, done);
      return done;
    },
    [](const void* args, void* pool) {
      cpu_impl::convolve_rounded(*static_cast<const cpu_impl::detail::group_call<float>*>(args),
                                 *static_cast<cpu_impl::thread_pool*>(pool));
    }};

template <device D>
  requires is_cpu_v<D>
inline constexpr const kept_kernels& kept_kernels_on<D> = kept_kernels_of<cpu>;

}  // namespace sinter::detail

// src/kernels.cpp: products, convolutions, pooling, moments, cross-entropy and reductions, compiled for several sets of
// vector instructions; see cmake/sinterVariants.cmake.
#include <sinter/cpu/variants.hpp>

#include <sinter/sinter.hpp>

namespace sinter::cpu_impl::variants {

#define SINTER_DEFINED(T, name, parameters, arguments) \
  void name parameters { cpu_impl::name<T> arguments; }
SINTER_VARIANTS(SINTER_DEFINED)

}  // namespace sinter::cpu_impl::variants

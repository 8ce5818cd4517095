// sinter/math/packet_eigen.hpp: Eigen's packets without its matrices, which would take half a second more to read.
#pragma once

#include "sinter/config.hpp"

#if defined(EIGEN_CORE_H) || defined(EIGEN_CORE_MODULE_H) || defined(__CUDACC__) || defined(_OPENMP) || \
    defined(EIGEN_USE_MKL_ALL) || defined(EIGEN_USE_SYCL) || defined(EIGEN_DONT_VECTORIZE) ||           \
    !__has_include(<Eigen/src/Core/arch/Default/GenericPacketMathFunctionsFwd.h>) ||                    \
    __has_include(<Eigen/src/Core/InternalHeaderCheck.h>) || !(defined(__x86_64__) || defined(__aarch64__))
#include <Eigen/Core>
#else
// What <Eigen/Core> of Eigen 3.4 begins with, in its order. The same file may follow and adds the rest.
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <array>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>

// clang-format off
#include <Eigen/src/Core/util/DisableStupidWarnings.h>
#include <Eigen/src/Core/util/Macros.h>
#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)  // where an older one stands first in the search path
#error "sinter: needs Eigen 3.4 or later; this one is older"
#include <sinter_needs_eigen_3_4>
#endif
#include <Eigen/src/Core/util/ConfigureVectorization.h>
#include <Eigen/src/Core/util/MKL_support.h>
#include <Eigen/src/Core/util/Constants.h>
#include <Eigen/src/Core/util/Meta.h>
#include <Eigen/src/Core/util/ForwardDeclarations.h>
#include <Eigen/src/Core/util/StaticAssert.h>
#include <Eigen/src/Core/util/XprHelper.h>
#include <Eigen/src/Core/util/Memory.h>
#include <Eigen/src/Core/util/IntegralConstant.h>
#include <Eigen/src/Core/util/SymbolicIndex.h>
#include <Eigen/src/Core/NumTraits.h>
#include <Eigen/src/Core/MathFunctions.h>
#include <Eigen/src/Core/GenericPacketMath.h>
#include <Eigen/src/Core/MathFunctionsImpl.h>
#include <Eigen/src/Core/arch/Default/ConjHelper.h>
#include <Eigen/src/Core/arch/Default/Half.h>
#include <Eigen/src/Core/arch/Default/BFloat16.h>
#include <Eigen/src/Core/arch/Default/TypeCasting.h>
#include <Eigen/src/Core/arch/Default/GenericPacketMathFunctionsFwd.h>
#if defined(EIGEN_VECTORIZE_SSE)
#include <Eigen/src/Core/arch/SSE/PacketMath.h>
#include <Eigen/src/Core/arch/SSE/TypeCasting.h>
#if defined(EIGEN_VECTORIZE_AVX)
#include <Eigen/src/Core/arch/AVX/PacketMath.h>
#include <Eigen/src/Core/arch/AVX/TypeCasting.h>
#endif
#if defined(EIGEN_VECTORIZE_AVX512)
#include <Eigen/src/Core/arch/AVX512/PacketMath.h>
#include <Eigen/src/Core/arch/AVX512/TypeCasting.h>
#endif
#include <Eigen/src/Core/arch/SSE/MathFunctions.h>
#if defined(EIGEN_VECTORIZE_AVX)
#include <Eigen/src/Core/arch/AVX/MathFunctions.h>
#endif
#if defined(EIGEN_VECTORIZE_AVX512)
#include <Eigen/src/Core/arch/AVX512/MathFunctions.h>
#endif
#elif defined(EIGEN_VECTORIZE_NEON)
#include <Eigen/src/Core/arch/NEON/PacketMath.h>
#include <Eigen/src/Core/arch/NEON/TypeCasting.h>
#include <Eigen/src/Core/arch/NEON/MathFunctions.h>
#endif
#include <Eigen/src/Core/arch/Default/Settings.h>
#include <Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h>
#include <Eigen/src/Core/util/ReenableStupidWarnings.h>
// clang-format on
#endif

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "sinter: needs Eigen 3.4 or later; this one is older"
#include <sinter_needs_eigen_3_4>
#endif

// sinter/config.hpp: the library's version, the few SINTER_ macros, and the link-time check of one configuration.
#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "sinter: needs C++20: compile with -std=c++20"
#include <sinter_needs_cxx20>  // is not there, and ends the compilation before thousands of errors that follow
#endif

#if !defined(__LP64__) && !defined(_WIN64)
#error "sinter: needs a 64-bit system: its sizes and indices have 64 bits"
#include <sinter_needs_64_bits>
#endif

// The words of math/ round by adding and subtracting constants, split numbers into two whose sum is exact, and tell
// NaNs, infinities and the signs of zeros apart. g++ defines __GCC_IEC_559 as 0 under every flag that breaks this;
// clang has macros for some of the flags, the others are found further down, when it makes code of them.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    (defined(__GCC_IEC_559) && __GCC_IEC_559 == 0)
#error \
    "sinter: -ffast-math, -Ofast and their parts make its numbers wrong: compile what includes it with -fno-fast-math"
#include <sinter_needs_fno_fast_math>
#endif
#if !defined(__cpp_exceptions) && !defined(__CUDA_ARCH__)
#error "sinter: reports mistakes by exceptions: compile what includes it without -fno-exceptions"
#include <sinter_needs_exceptions>
#endif

// Other people's macros; libstdc++ does the same when its first header is read.
#undef min
#undef max

#define SINTER_VERSION_MAJOR 0
#define SINTER_VERSION_MINOR 2
#define SINTER_VERSION_PATCH 0
#define SINTER_VERSION (SINTER_VERSION_MAJOR * 10000 + SINTER_VERSION_MINOR * 100 + SINTER_VERSION_PATCH)
#define SINTER_DETAIL_TEXT_OF(x) #x
#define SINTER_DETAIL_TEXT(x) SINTER_DETAIL_TEXT_OF(x)
#define SINTER_VERSION_STRING              \
  SINTER_DETAIL_TEXT(SINTER_VERSION_MAJOR) \
  "." SINTER_DETAIL_TEXT(SINTER_VERSION_MINOR) "." SINTER_DETAIL_TEXT(SINTER_VERSION_PATCH)

// 1: the CUDA backend is compiled in. That takes nvcc or clang's CUDA mode, and is the default there; other files of
// the program name, store and pass what lives on a GPU. Types are laid out alike either way, so all objects link
// together.
#ifndef SINTER_WITH_CUDA
#ifdef __CUDACC__
#define SINTER_WITH_CUDA 1
#else
#define SINTER_WITH_CUDA 0
#endif
#endif
#if SINTER_WITH_CUDA && !defined(__CUDACC__)
#error "sinter: SINTER_WITH_CUDA=1 is for files compiled by nvcc or clang's CUDA mode; leave it out here"
#endif
#if SINTER_WITH_CUDA && defined(__NVCC__) && !defined(__CUDACC_RELAXED_CONSTEXPR__)
#error "sinter: compile with nvcc --expt-relaxed-constexpr, or without the CUDA backend with -DSINTER_WITH_CUDA=0"
#endif

// 1: sinter.hpp includes data.hpp, io.hpp and metrics.hpp: datasets, loaders, files, metrics. Programs with the single
// header, which includes nothing else, set it before their #include.
#ifndef SINTER_WITH_DATA
#define SINTER_WITH_DATA 0
#endif
// The same for parallel.hpp, models over several devices, and for ranks.hpp, training on several ranks.
#ifndef SINTER_WITH_PARALLEL
#define SINTER_WITH_PARALLEL 0
#endif
#ifndef SINTER_WITH_RANKS
#define SINTER_WITH_RANKS 0
#endif
// The same for linalg.hpp, linear algebra.
#ifndef SINTER_WITH_LINALG
#define SINTER_WITH_LINALG 0
#endif
// The same for sequences.hpp, recurrent layers, attention and what they need.
#ifndef SINTER_WITH_SEQUENCES
#define SINTER_WITH_SEQUENCES 0
#endif

// 1: .gz files are unpacked by zlib, and the program is linked with it; otherwise by the program gzip (CMake's option
// of this name, on where zlib is found, sets it for sinter::sinter).
#ifndef SINTER_WITH_ZLIB
#define SINTER_WITH_ZLIB 0
#endif
// 1, in all files of a program that read or write pictures: PNG files are read, and well packed, by libpng, JPEG files
// are read and written by libjpeg-turbo, and the program is linked with them (CMake's options of these names, on where
// the libraries are found, set them for sinter::sinter).
#ifndef SINTER_WITH_PNG
#define SINTER_WITH_PNG 0
#endif
#ifndef SINTER_WITH_JPEG
#define SINTER_WITH_JPEG 0
#endif
// 1, in all files of a program that have socket_communicator: it can encrypt, by OpenSSL 3, and the program is linked
// with libcrypto (CMake's option of this name sets it for sinter::sinter).
#ifndef SINTER_WITH_OPENSSL
#define SINTER_WITH_OPENSSL 0
#endif
// 1: cuda/cudnn.hpp, cuda/nccl.hpp are part of the backend, and the program is linked with cuDNN, NCCL (CMake's options
// of these names set it for sinter::cuda). Convolutions go by cuDNN where it is 1, so all files of a program that have
// the backend need the same SINTER_WITH_CUDNN.
#ifndef SINTER_WITH_CUDNN
#define SINTER_WITH_CUDNN 0
#endif
#ifndef SINTER_WITH_NCCL
#define SINTER_WITH_NCCL 0
#endif
// 1: cuda/cub.hpp is part of the backend, for one file of a program, which holds nothing but Sinter; see there.
#ifndef SINTER_WITH_CUB
#define SINTER_WITH_CUB 0
#endif
// 1, in all files of a program that have the backend: cuda/cub_folds.hpp is part of it; see there.
#ifndef SINTER_WITH_CUB_FOLDS
#define SINTER_WITH_CUB_FOLDS 0
#endif
#if SINTER_WITH_CUDNN && !SINTER_WITH_CUDA
#error \
    "sinter: SINTER_WITH_CUDNN=1 is for files with the CUDA backend, compiled by nvcc or clang's CUDA mode; leave it out here"
#endif
#if SINTER_WITH_NCCL && !SINTER_WITH_CUDA
#error \
    "sinter: SINTER_WITH_NCCL=1 is for files with the CUDA backend, compiled by nvcc or clang's CUDA mode; leave it out here"
#endif
#if SINTER_WITH_CUB && !SINTER_WITH_CUDA
#error "sinter: SINTER_WITH_CUB=1 is for one file with the CUDA backend, compiled by nvcc; leave it out here"
#endif
#if SINTER_WITH_CUB_FOLDS && !SINTER_WITH_CUDA
#error "sinter: SINTER_WITH_CUB_FOLDS=1 is for files with the CUDA backend, compiled by nvcc; leave it out here"
#endif

// 1: the MPI communicator is compiled in (target sinter::mpi sets it).
#ifndef SINTER_WITH_MPI
#define SINTER_WITH_MPI 0
#endif

// 1: what is the same in every program is only declared: loops, pools, products, tape, files and the classes of common
// tensors. The program links sinter::compiled, or one of its files defines SINTER_IMPLEMENTATION before it includes
// Sinter. 0: every file holds what it needs, as those for nvcc always do.
#if defined(__CUDACC__)
#undef SINTER_COMPILED
#define SINTER_COMPILED 0
#if defined(SINTER_IMPLEMENTATION)
#error "sinter: SINTER_IMPLEMENTATION is for a file of the host compiler; leave it out here"
#endif
#endif
// SINTER_STOCK_PART: in the files of sinter::compiled, which of the tables of stock expressions they hold; see
// expr/stock.hpp. A file with SINTER_IMPLEMENTATION that does not say it holds all of them.
#ifdef SINTER_IMPLEMENTATION
#undef SINTER_COMPILED
#define SINTER_COMPILED 1
#define SINTER_DEFINES 1
#define SINTER_INSTANCE template
#ifndef SINTER_STOCK_PART
#define SINTER_STOCK_PART -1
#endif
#else
#ifndef SINTER_STOCK_PART
#define SINTER_STOCK_PART 0
#endif
#ifndef SINTER_COMPILED
#define SINTER_COMPILED 0
#endif
#define SINTER_DEFINES (!SINTER_COMPILED)
#define SINTER_INSTANCE extern template
#endif
// Of a class whose members have constraints: clang before 16 also makes those whose constraints do not hold.
#if defined(__clang__) && __clang_major__ < 16
#define SINTER_INSTANCE_OF_CLASS(...)
#else
#define SINTER_INSTANCE_OF_CLASS(...) SINTER_INSTANCE __VA_ARGS__;
#endif
// Before such a function, whose definition stands where SINTER_DEFINES holds.
#if SINTER_COMPILED
#define SINTER_SHARED
#else
#define SINTER_SHARED inline
#endif
// The same for what runs once or when something goes wrong.
#define SINTER_SHARED_COLD __attribute__((cold)) SINTER_SHARED
// The same, never inlined: for what many places call and is much code.
#define SINTER_SHARED_NOINLINE __attribute__((noinline)) SINTER_SHARED
// 1, in src/sinter.cpp only: kernels come from src/kernels.cpp, which is compiled for several sets of instructions.
#ifndef SINTER_KERNEL_VARIANTS
#define SINTER_KERNEL_VARIANTS 0
#endif

// Before the functions that kernels are made of, so that they compile to straight code.
#define SINTER_INLINE __attribute__((always_inline)) inline
// Inlines a lambda; stands after its parameters.
#define SINTER_INLINE_LAMBDA __attribute__((always_inline))

// Before a kernel: all that it calls is inlined. g++ then copies each function once, into the kernel, and not into
// every function that stands between them, as it does with always_inline. To clang that makes no difference, and it
// does not look behind the calls of the kernel itself.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define SINTER_KERNEL __attribute__((flatten))
#define SINTER_IN_KERNEL inline
#define SINTER_LAMBDA_IN_KERNEL
#else
#define SINTER_KERNEL
#define SINTER_IN_KERNEL SINTER_INLINE
#define SINTER_LAMBDA_IN_KERNEL SINTER_INLINE_LAMBDA
#endif

// Inlines a function that also runs inside CUDA kernels. It is not __host__ __device__: it works on packets on the
// host, too, and nvcc accepts those in no __device__ function, called or not. nvcc compiles a constexpr function
// for the side that calls it.
#define SINTER_WORD constexpr SINTER_IN_KERNEL

// For a function that kernels share: it is compiled once for a file, not for every statement.
#define SINTER_WORD_NOINLINE constexpr __attribute__((noinline))

// Before what runs once or when something goes wrong: out of line, and small rather than fast.
#define SINTER_COLD __attribute__((cold, noinline))

// Before a loop that is to be unrolled.
#if defined(__CUDA_ARCH__)
#define SINTER_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define SINTER_UNROLL
#else
#define SINTER_UNROLL _Pragma("GCC unroll 16")
#endif

// nvcc's host pass is to see the Eigen that the host compiler sees, with its packets.
#if defined(__CUDACC__) && !defined(EIGEN_NO_CUDA)
#define EIGEN_NO_CUDA
#endif

// What differs between objects that must not meet in one program: the width of Eigen's packets, and whether the
// compiler may fuse a * b + c. The flags of -m decide it.
#if defined(EIGEN_MAX_ALIGN_BYTES)
#define SINTER_DETAIL_ALIGN EIGEN_MAX_ALIGN_BYTES
#else
#define SINTER_DETAIL_ALIGN 64
#endif
// Eigen leaves its packets out where nothing may be aligned.
#if defined(EIGEN_DONT_VECTORIZE) || defined(EIGEN_DONT_ALIGN) || SINTER_DETAIL_ALIGN == 0 || defined(EIGEN_GPUCC)
#define SINTER_DETAIL_VECTORS "scalar"
#elif defined(__AVX512F__)
#define SINTER_DETAIL_VECTORS "avx512"
#elif defined(__AVX2__)
#define SINTER_DETAIL_VECTORS "avx2"
#elif defined(__AVX__)
#define SINTER_DETAIL_VECTORS "avx"
#elif defined(__SSE4_1__)
#define SINTER_DETAIL_VECTORS "sse4"
#elif defined(__SSE2__)
#define SINTER_DETAIL_VECTORS "sse2"
#elif defined(__ARM_FEATURE_SVE) && defined(__ARM_FEATURE_SVE_BITS) && defined(EIGEN_ARM64_USE_SVE)
#define SINTER_DETAIL_VECTORS "sve" SINTER_DETAIL_TEXT(__ARM_FEATURE_SVE_BITS)
#elif defined(__ARM_NEON)
#define SINTER_DETAIL_VECTORS "neon"
#elif defined(__VSX__)
#define SINTER_DETAIL_VECTORS "vsx"
#else
#define SINTER_DETAIL_VECTORS "scalar"
#endif

#if defined(__FMA__)
#define SINTER_DETAIL_FMA "_fma"
#else
#define SINTER_DETAIL_FMA ""
#endif

// Such as "sinter_v0_2_0_avx2_fma".
#define SINTER_CONFIGURATION                                                  \
  "sinter_v" SINTER_DETAIL_TEXT(SINTER_VERSION_MAJOR) "_" SINTER_DETAIL_TEXT( \
      SINTER_VERSION_MINOR) "_" SINTER_DETAIL_TEXT(SINTER_VERSION_PATCH) "_" SINTER_DETAIL_VECTORS SINTER_DETAIL_FMA

// Objects of different configurations define the same inline functions in different ways, and a linker would silently
// keep any one. So each object carries an empty section named after its configuration, in a COMDAT group named after
// it too, which defines one symbol that all configurations share. Equal groups merge; two different ones define the
// symbol twice, and the linker's message names both sections, hence both configurations, and both files. Inside a
// function, because link-time optimisation does not see symbols there before it has merged equal functions; what it
// then finds twice in one assembly is reported with .error. Costs no byte at run time. Only for ELF; a program that
// keeps its variants apart by other means (one shared library each) may define SINTER_ALLOW_MIXED_CONFIGURATIONS.
#if defined(__ELF__) && defined(__GNUC__) && !defined(__CUDA_ARCH__) && !defined(SINTER_ALLOW_MIXED_CONFIGURATIONS)
// Defines function(), which holds the program to one `mine` for each `shared`.
#define SINTER_DETAIL_HOLD_TO_ONE(function, mine, shared, advice)                                                 \
  __attribute__((used)) inline void function() __asm__(mine);                                                     \
  inline void function() {                                                                                        \
    __asm__ volatile(".pushsection ." mine ",\"G\",%progbits," mine                                               \
                     "_objects,comdat\n"                                                                          \
                     ".ifndef " mine                                                                              \
                     "_here\n"                                                                                    \
                     ".ifdef " shared "\n" shared "_mismatch " mine                                               \
                     "\n"                                                                                         \
                     ".else\n"                                                                                    \
                     ".macro " shared                                                                             \
                     "_mismatch this\n"                                                                           \
                     ".error \"Sinter: parts of this program are compiled as " mine ", others as \\this; " advice \
                     "\"\n"                                                                                       \
                     ".endm\n" mine                                                                               \
                     "_here:\n"                                                                                   \
                     ".globl " shared                                                                             \
                     "\n"                                                                                         \
                     ".hidden " shared "\n" shared                                                                \
                     ":\n"                                                                                        \
                     ".endif\n"                                                                                   \
                     ".endif\n"                                                                                   \
                     ".popsection");                                                                              \
  }
namespace sinter::detail {
SINTER_DETAIL_HOLD_TO_ONE(one_configuration, SINTER_CONFIGURATION,
                          "sinter_objects_of_one_program_need_one_version_and_one_set_of_m_flags",
                          "compile all with one version and the same -m flags")
#if SINTER_WITH_CUDA
#if SINTER_WITH_CUB_FOLDS
#define SINTER_DETAIL_FOLDS "sinter_with_cub_folds"
#else
#define SINTER_DETAIL_FOLDS "sinter_without_cub_folds"
#endif
SINTER_DETAIL_HOLD_TO_ONE(one_kind_of_folds, SINTER_DETAIL_FOLDS,
                          "sinter_files_for_nvcc_of_one_program_need_one_SINTER_WITH_CUB_FOLDS",
                          "compile all files for nvcc with the same SINTER_WITH_CUB_FOLDS")
#undef SINTER_DETAIL_FOLDS
#if SINTER_WITH_CUDNN
#define SINTER_DETAIL_CONVOLUTIONS "sinter_with_cudnn"
#else
#define SINTER_DETAIL_CONVOLUTIONS "sinter_without_cudnn"
#endif
SINTER_DETAIL_HOLD_TO_ONE(one_kind_of_convolutions, SINTER_DETAIL_CONVOLUTIONS,
                          "sinter_files_for_nvcc_of_one_program_need_one_SINTER_WITH_CUDNN",
                          "compile all files for nvcc with the same SINTER_WITH_CUDNN")
#undef SINTER_DETAIL_CONVOLUTIONS
#endif
}  // namespace sinter::detail
#undef SINTER_DETAIL_HOLD_TO_ONE
#endif

// Each comparison is constant for clang's optimiser under the flag at its end only, and the call of an error function
// that is left then is an error. Without optimisation the flags change nothing.
#if defined(__clang__) && !defined(__CUDA_ARCH__)
namespace sinter::detail {
__attribute__((
    error("sinter: -funsafe-math-optimizations and the like make its numbers wrong: compile what includes it with "
          "-fno-fast-math"))) void
refuse_flags();
__attribute__((used)) inline void see_flags(float x) {
  const auto is = [](float a, float b) SINTER_INLINE_LAMBDA {
    return __builtin_bit_cast(unsigned, a) == __builtin_bit_cast(unsigned, b);
  };
  const bool reassociates = is((x + 1.f) - 1.f, x + 0.f);                // -fassociative-math
  const bool drops_signs = is(x + 0.f, x);                               // -fno-signed-zeros
  const bool divides_by_product = is(x / 3.f, x * (1.f / 3.f));          // -freciprocal-math
  const bool ignores_nan = x == x;                                       // -fno-honor-nans
  const bool ignores_infinity = __builtin_fabsf(x) == __builtin_inff();  // -fno-honor-infinities
  if (__builtin_constant_p(reassociates) || __builtin_constant_p(drops_signs) ||
      __builtin_constant_p(divides_by_product) || __builtin_constant_p(ignores_nan) ||
      __builtin_constant_p(ignores_infinity))
    refuse_flags();
}
}  // namespace sinter::detail
#endif

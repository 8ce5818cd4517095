// sinter/math/inline.hpp: the qualifiers of every word, so that kernels compile to straight code.
#pragma once

#ifndef SINTER_INLINE
#define SINTER_INLINE __attribute__((always_inline)) inline
#endif

// A word of the scalar kind is also callable from a CUDA kernel.
#ifndef SINTER_WORD
#ifdef __CUDACC__
#define SINTER_WORD __host__ __device__ SINTER_INLINE
#else
#define SINTER_WORD SINTER_INLINE
#endif
#endif

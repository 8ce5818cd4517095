// tests/compile_fail/cub_in_host_only_file.cpp: the header for sorts by CUB in a file for the host compiler.
// FIRST-LINE: cub.hpp is for a file with the CUDA backend, compiled by nvcc
// LINES-GCC: 4
// LINES-CLANG: 5
// LINES-NVCC: 4
#ifdef SINTER_MUST_FAIL
#include "sinter/cuda/cub.hpp"
#endif
#include "sinter/core.hpp"

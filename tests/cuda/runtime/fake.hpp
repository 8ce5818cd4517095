// tests/cuda/runtime/fake.hpp: a machine with GPUs that are not there, behind the functions of the CUDA runtime and
// cuBLASLt.
//
// fake.cpp defines those functions that Sinter and CUB call, and a program is linked with it instead of the libraries.
// Memory of a GPU is memory of the host; kernels are noted, and compute nothing unless run_kernels.cpp is in the
// program too; copies, fills and products are done for real. What is put on a stream runs as late as the rules allow,
// when somebody waits for it, so that who reads too early reads what was there before. A call that CUDA forbids, or
// that Sinter promises not to make, is a misuse: it fails, and misuses() tells.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fake_cuda {

struct machine {
  int gpus = 4;
  int driver = CUDART_VERSION;                ///< 0: none
  std::size_t memory = std::size_t{1} << 28;  ///< of each GPU, in bytes
  bool peers = true;                          ///< GPUs can reach each other
  bool code = true;                           ///< the program holds code for them
  bool epilogues = true;                      ///< cuBLASLt has algorithms for what follows a product
  std::size_t workspace = 1000;               ///< that its algorithms want, and those of cuDNN
  bool deterministic = true;                  ///< cuDNN has algorithms that are
};
/// May be changed between calls.
machine& settings();

/// What was made and not yet given back.
struct living {
  std::size_t blocks, pinned, streams, events, graphs, executables, libraries, descriptors;
  bool operator==(const living&) const = default;
};
living now_living();
std::string text(const living& l);
std::size_t bytes_taken(int gpu);
/// Did the program let `gpu` reach the memory of `other`?
bool has_path(int gpu, int other);

struct launch {
  std::string kernel;  ///< as the compiler names it; the function's name for work of a library
  int gpu;
  unsigned blocks, threads;
  std::size_t shared_bytes;
};
/// All that were started so far, those of graphs each time that the graph was.
const std::vector<launch>& launches();

/// Since the last call.
std::vector<std::string> misuses();

/// A call that fails, and does nothing.
struct fault {
  std::size_t after = 1;  ///< the first call from now on is number 1
  cudaError_t error = cudaErrorUnknown;
  cudaError_t allocation = cudaErrorMemoryAllocation;  ///< of cudaMalloc and cudaHostAlloc
  cublasStatus_t library = CUBLAS_STATUS_EXECUTION_FAILED;
  std::string
      function;  ///< only its calls count; empty: all, but for those that ask for errors and versions, which never fail
};
void plan(const fault& f);
/// The function that has failed, or an empty string where the fault is still to come; it will not come any more.
std::string end_plan();

/// Calls f once, on the thread of the next call of that function of the runtime, and before this call does anything.
void before_next(const std::string& function, std::function<void()> f);

/// The next operation that runs on the GPU breaks it: all calls fail with this from then on, until mend().
void break_soon(cudaError_t error);
void mend();

}  // namespace fake_cuda

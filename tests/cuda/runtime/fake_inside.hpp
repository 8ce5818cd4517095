// tests/cuda/runtime/fake_inside.hpp: what the fake of cuBLASLt needs of the fake of the runtime.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace fake_cuda {

/// Notes a misuse.
void note(const std::string& what);
/// What is wrong with using these bytes as memory of a GPU, or with -1 as pinned memory; empty: nothing.
std::string trouble(const void* p, std::size_t bytes, int gpu);
/// Whether the call is to fail. It has the machine to itself for as long as the lock is held.
cublasStatus_t begin_library_call(const char* function, std::unique_lock<std::mutex>& lock);
int current_gpu();
std::size_t& live_libraries();
std::size_t& live_descriptors();
/// False if the stream does not take it.
bool put_product(cudaStream_t stream, std::function<void()> run);

}  // namespace fake_cuda

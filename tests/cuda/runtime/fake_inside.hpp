// tests/cuda/runtime/fake_inside.hpp: what the fakes of cuBLASLt and cuDNN, and the code that runs kernels, need of
// the fake of the runtime.
#pragma once

#include "fake.hpp"

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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
bool put_library_work(const char* function, cudaStream_t stream, std::function<void()> run);

/// The same for work with other GPUs, which runs once ready() says so. `reach` becomes a function that runs what was
/// put on the stream before, and says whether all of it has run.
bool put_shared_work(const char* function, cudaStream_t stream, std::function<bool()> ready, std::function<void()> run,
                     std::function<bool()>& reach);

/// The allocation that a GPU reaches at an address: from where to where; twice null if there is none.
std::pair<const char*, const char*> reachable(const void* p, int gpu);

/// Computes what kernels do. `binary` is what the compiler has put in the program for the file that a kernel is in.
struct kernel_runner {
  virtual ~kernel_runner() = default;
  /// A kernel's parameters as run() wants them.
  virtual std::vector<char> parameters(const void* binary, const std::string& kernel, void** arguments) = 0;
  /// Errors: std::exception where the kernel does what it must not.
  virtual void run(const void* binary, const launch& l, const char* parameters) = 0;
};
/// Null where nobody does: kernels compute nothing.
kernel_runner*& runner();

}  // namespace fake_cuda

// tests/cuda/runtime/ptx.hpp: runs the code that nvcc has made for a GPU, PTX, on the host: one instruction after
// another, one thread of a block after another up to where it waits for others, at a barrier or in what a warp does
// together. NVIDIA, "Parallel Thread Execution ISA".
//
// What a GPU would refuse or leave undefined is an error that names the kernel and the instruction: an address outside
// the memory of its kind, one that is not a multiple of what is read there, threads that use the same shared memory
// with no barrier between them or that wait for each other at different barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ptx {

/// A part of memory.
struct span {
  std::uintptr_t begin = 0, end = 0;
};

struct grid {
  unsigned blocks, threads;
  std::size_t shared_bytes;  ///< beside what the kernel declares
};

/// The code of a file.
class module {
 public:
  /// Errors: std::runtime_error where the text is none, or holds an instruction that is not known here.
  explicit module(const std::string& text);
  module(const module&) = delete;
  module& operator=(const module&) = delete;
  ~module();

  /// How many bytes each of a kernel's parameters has, and where it lies among them.
  struct parameter {
    std::size_t offset, bytes;
  };
  const std::vector<parameter>& parameters_of(const std::string& kernel) const;

  /// Runs a kernel. `memory` gives the allocation that an address lies in, for kernels to read and write; an empty one
  /// where there is none. Errors: std::runtime_error, see above.
  void run(const std::string& kernel, const grid& shape, const void* parameters,
           const std::function<span(std::uintptr_t)>& memory) const;

  struct contents;

 private:
  std::unique_ptr<contents> in_;
};

}  // namespace ptx

// tests/cuda/simulator.hpp: cuda<I> on a machine without a GPU: the bodies of all kernels run on the host, thread by thread.
//
// The backend asks everything of gpu<D>; here it is a host that lays out blocks and threads, counts launches, keeps the
// memory of each device apart, and refuses what a GPU would not forgive: threads of a block that do not meet at sync().
#pragma once

#include <sinter/sinter.hpp>

#include <ucontext.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include "sinter/cuda/runtime.hpp"

namespace sinter::cuda_impl {

/// The threads of one block, each on a stack of its own; they take turns at sync().
class simulated_block {
 public:
  struct grid {
    simulated_block* at;
    index_t block_number, block_count;
    int number;

    index_t block() const { return block_number; }
    index_t blocks() const { return block_count; }
    int thread() const { return number; }
    int threads() const { return block_threads; }
    void sync() const { at->meet(); }
    template <class T>
    T* shared() const {
      return reinterpret_cast<T*>(at->shared_.data());
    }
  };

  template <class Body>
  void run(const Body& body, index_t block, index_t blocks, std::size_t shared_bytes) {
    shared_.assign(shared_bytes / sizeof(std::max_align_t) + 1, {});
    grid g{this, block, blocks, 0};
    if (shared_bytes == 0) {  // nobody can meet
      meets_ = false;
      for (g.number = 0; g.number < block_threads; ++g.number) body(g);
      return;
    }
    meets_ = true;
    const auto one = [&](int thread) {
      const grid mine{this, block, blocks, thread};
      body(mine);
    };
    run_all(one);
  }

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;
  struct fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    bool done = false;
    void* fake_stack = nullptr;
  };

  template <class F>
  void run_all(const F& f) {
    fibers_.resize(block_threads);
    const auto start = [](unsigned low, unsigned high) {
      auto* self = reinterpret_cast<simulated_block*>(static_cast<std::uintptr_t>(low) | static_cast<std::uintptr_t>(high) << 32);
      self->arrive(nullptr);
      (*static_cast<const F*>(self->work_))(self->current_);
      self->fibers_[static_cast<std::size_t>(self->current_)].done = true;
      self->leave(true);
    };
    work_ = &f;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    for (fiber& one : fibers_) {
      one.done = false;
      getcontext(&one.context);
      one.context.uc_stack.ss_sp = one.stack.get();
      one.context.uc_stack.ss_size = stack_bytes;
      one.context.uc_link = nullptr;
      makecontext(&one.context, reinterpret_cast<void (*)()>(+start), 2, static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
    }
    for (int ended = 0; ended < block_threads;) {
      ended = 0;
      for (current_ = 0; current_ < block_threads; ++current_) {
        fiber& one = fibers_[static_cast<std::size_t>(current_)];
        if (one.done) throw std::logic_error("simulator: a thread of the block left while others wait for it");
        enter(one);
        ended += one.done;
      }
      if (ended != 0 && ended != block_threads) throw std::logic_error("simulator: a thread of the block left while others wait for it");
    }
  }

  void meet() {
    if (!meets_) throw std::logic_error("simulator: sync() in a kernel without shared memory");
    leave(false);
  }

#if defined(__SANITIZE_ADDRESS__)
  void enter(fiber& one) {
    void* mine = nullptr;
    __sanitizer_start_switch_fiber(&mine, one.stack.get(), stack_bytes);
    swapcontext(&host_, &one.context);
    __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
  }
  void arrive(void* mine) { __sanitizer_finish_switch_fiber(mine, &host_stack_, &host_bytes_); }
  void leave(bool for_good) {
    fiber& one = fibers_[static_cast<std::size_t>(current_)];
    __sanitizer_start_switch_fiber(for_good ? nullptr : &one.fake_stack, host_stack_, host_bytes_);
    swapcontext(&one.context, &host_);
    arrive(one.fake_stack);
  }
  const void* host_stack_ = nullptr;
  std::size_t host_bytes_ = 0;
#else
  void enter(fiber& one) { swapcontext(&host_, &one.context); }
  void arrive(void*) {}
  void leave(bool) { swapcontext(&fibers_[static_cast<std::size_t>(current_)].context, &host_); }
#endif

  std::vector<std::max_align_t> shared_;
  std::vector<fiber> fibers_;
  ucontext_t host_;
  const void* work_ = nullptr;
  int current_ = 0;
  bool meets_ = false;
};

template <device D>
struct gpu {
  static auto& memory() {
    static auto& arena = *new sinter::detail::caching_arena<sinter::detail::host_memory>(device_name<D>());
    return arena;
  }
  static std::size_t& launches() {
    static std::size_t n = 0;
    return n;
  }

  template <class Body>
  static void launch(const char* what, const Body& body, const launch_shape& shape) {
    static_assert(std::is_trivially_copyable_v<Body>, "what a kernel takes is copied as bytes");
    static_assert(sizeof(Body) <= 32764);
    if (shape.blocks == 0) return;
    if (shape.blocks < 0 || shape.blocks > most_blocks || shape.shared_bytes > 48 * 1024)
      throw std::logic_error(std::string("simulator: no such grid for ") + what);
    ++launches();
    alignas(Body) char copy[sizeof(Body)];
    std::memcpy(copy, &body, sizeof(Body));
    simulated_block block;
    for (index_t b = 0; b < shape.blocks; ++b) block.run(*reinterpret_cast<const Body*>(copy), b, shape.blocks, shape.shared_bytes);
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  static void copy_from_host(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  template <device From>
  static void copy_from_device(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }

  template <class T>
  static void gemm(bool a_turned, bool b_turned, index_t m, index_t n, index_t k, const T* a, index_t lda, const T* b, index_t ldb,
                   compute_type<T> beta, T* c, index_t ldc) {
    if (lda < (a_turned ? k : m) || ldb < (b_turned ? n : k) || ldc < m) throw std::logic_error("simulator: a leading dimension is too small");
    ++launches();
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < m; ++i) {
        double sum = beta != 0 ? static_cast<double>(beta) * static_cast<double>(c[i + j * ldc]) : 0;
        for (index_t p = 0; p < k; ++p)
          sum += static_cast<double>(a_turned ? a[p + i * lda] : a[i + p * lda]) * static_cast<double>(b_turned ? b[j + p * ldb] : b[p + j * ldb]);
        c[i + j * ldc] = static_cast<T>(sum);
      }
  }
};

}  // namespace sinter::cuda_impl

#include "sinter/cuda/backend.hpp"

namespace sinter {

/// Kernels that ran on D so far.
template <device D>
std::size_t launches() {
  return cuda_impl::gpu<D>::launches();
}

}  // namespace sinter

// tests/cuda/simulated_block.hpp: the threads of a block on the host, and all that may differ from one run to the next.
//
// Each thread has a stack of its own, and all take turns. Which of them comes first, nobody may rely on: it changes
// from block to block. With the environment's SINTER_SIMULATED_ORDER=<seed> they run in a random order, and leave off
// at atomics and copies too; 0, in one that repeats. Shared memory is as large as was asked for, and full of garbage;
// what is copied ahead is garbage until the copies are finished.
//
// ThreadSanitizer takes each of them for a thread, ordered against the others by nothing but sync(), arrives_last() and
// the begin and end of a launch, so that it sees what a GPU might do in between. There the order is random unless it is
// told.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// The blocks of a launch, one after the other: run() for each, then end_launch(). What its threads and the host both
/// touch while they are not ordered, only functions do that ThreadSanitizer leaves alone.
class simulated_block {
  struct alignas(16) shared_memory {
    std::atomic<int> meetings[2] = {};
    bool meets;
    bool last = false;             ///< see arrives_last()
    std::atomic<bool> any{false};  ///< see any()
    explicit shared_memory(bool with_memory) : meets(with_memory) {}
  };
  struct copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  /// Of a thread, whose copies of its grid all know it.
  struct progress {
    unsigned meetings = 0;
    std::vector<copy> copies;  ///< begun and not finished
  };

 public:
  class grid {
   public:
    grid(simulated_block* in, int thread, progress* own)
        : at_(in), memory_(in->memory_), block_(in->number_), blocks_(in->count_), thread_(thread), own_(own) {}

    index_t block() const { return block_; }
    index_t blocks() const { return blocks_; }
    int thread() const { return thread_; }
    int threads() const { return block_threads; }
    /// Two meetings take turns: nobody comes to the second before all have left the first.
    void sync() const {
      if (!memory_->meets) throw std::logic_error("simulator: sync() in a kernel without shared memory");
      std::atomic<int>& here = memory_->meetings[own_->meetings++ % 2];
      here.fetch_add(1, std::memory_order_release);
      at_->wait();
      here.load(std::memory_order_acquire);
    }
    bool any(bool is) const {
      sync();
      if (thread_ == 0) memory_->any.store(false, std::memory_order_relaxed);
      sync();
      if (is) memory_->any.store(true, std::memory_order_relaxed);
      sync();
      return memory_->any.load(std::memory_order_relaxed);
    }
    template <class T>
    void add(T* to, T n) const {
      at_->give_way();
      std::atomic_ref(*to).fetch_add(n, std::memory_order_relaxed);
    }
    unsigned take(unsigned* counter) const {
      at_->give_way();
      const unsigned before = std::atomic_ref(*counter).fetch_add(1, std::memory_order_relaxed);
      at_->give_way();
      return before;
    }
    bool arrives_last(unsigned* counter, unsigned blocks) const {
      sync();
      if (thread_ == 0) {
        memory_->last = std::atomic_ref(*counter).fetch_add(1, std::memory_order_acq_rel) + 1 == blocks;
        if (memory_->last) *counter = 0;
      }
      sync();
      return memory_->last;
    }
    template <class T>
    T fresh(const T* p) const {
      return *p;
    }
    template <class T>
    void copy_ahead(T* to, const T* from) const {
      static_assert(sizeof(T) % 16 == 0);
      if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
        throw std::logic_error("simulator: copy_ahead of what does not lie at a multiple of 16 bytes");
      at_->give_way();
      std::memset(static_cast<void*>(to), 0xff, sizeof(T));
      own_->copies.push_back({to, from, sizeof(T)});
    }
    void finish_copies() const {
      at_->give_way();
      for (const copy& one : own_->copies) std::memcpy(one.to, one.from, one.bytes);
      own_->copies.clear();
    }
    template <class T>
    T* shared() const {
      static_assert(alignof(T) <= alignof(shared_memory));
      return reinterpret_cast<T*>(memory_ + 1);
    }

   private:
    simulated_block* at_;
    shared_memory* memory_;
    index_t block_, blocks_;
    int thread_;
    progress* own_;
  };

  simulated_block() {
    if (const char* seed = std::getenv("SINTER_SIMULATED_ORDER")) random_ = std::strtoull(seed, nullptr, 10);
    for (int t = 0; t < block_threads; ++t) order_[t] = t;
  }
  simulated_block(const simulated_block&) = delete;
  simulated_block& operator=(const simulated_block&) = delete;

  static simulated_block& of_this_thread() {
    thread_local const auto one = std::make_unique<simulated_block>();
    return *one;
  }

  template <class Body>
  [[gnu::no_sanitize_thread]] void run(const Body& body, index_t block, index_t blocks, std::size_t shared_bytes) {
    number_ = block;
    count_ = blocks;
    memory_ = share(shared_bytes);
    body_ = &body;
    body_of_thread_ = [](const void* of, const grid& g) { (*static_cast<const Body*>(of))(g); };
    put_in_order();
    if (memory_->meets || finds_races) run_in_turns();
    else
      for (const int t : order_) run_thread(t);
    if (!finds_races) memories_.clear();
  }
  void end_launch() {
    ended_.load(std::memory_order_acquire);
    memories_.clear();
  }

 private:
#if defined(__SANITIZE_THREAD__)
  static constexpr bool finds_races = true;
#else
  static constexpr bool finds_races = false;
#endif
  static constexpr std::size_t stack_bytes = 256 * 1024;

  struct fiber {
    enum { ready, waits, done } state = ready;
    bool started = false;
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
#if defined(__SANITIZE_ADDRESS__)
    void* fake_stack = nullptr;
#elif defined(__SANITIZE_THREAD__)
    void* known_as = __tsan_create_fiber(0);
    ~fiber() { __tsan_destroy_fiber(known_as); }
#else
    jmp_buf resume;
#endif
  };

  shared_memory* share(std::size_t bytes) {
    char* const memory = static_cast<char*>(std::malloc(sizeof(shared_memory) + bytes));
    memories_.emplace_back(memory);
    std::memset(memory + sizeof(shared_memory), number_ % 2 == 0 ? 0x5a : 0xff, bytes);
    return new (memory) shared_memory(bytes > 0);
  }

  void run_thread(int t) {
    progress own;
    body_of_thread_(body_, grid(this, t, &own));
    if (!own.copies.empty())
      throw std::logic_error("simulator: a thread leaves its block before what it copies has arrived");
  }
  static void start(unsigned low, unsigned high) {
    auto* const self =
        reinterpret_cast<simulated_block*>(static_cast<std::uintptr_t>(low) | static_cast<std::uintptr_t>(high) << 32);
    self->arrive(nullptr);
    self->begun_.load(std::memory_order_acquire);
    try {
      self->run_thread(self->current_);
    } catch (...) {
      self->failure_ = std::current_exception();
    }
    self->ended_.fetch_add(1, std::memory_order_release);
    self->end();
  }
  void begin() { begun_.fetch_add(1, std::memory_order_release); }

  [[gnu::no_sanitize_thread]] void run_in_turns() {
    if (fibers_ == nullptr) fibers_.reset(new fiber[block_threads]);
    fiber* const all = fibers_.get();
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    for (int t = 0; t < block_threads; ++t) {
      fiber& one = all[t];
      one.state = fiber::ready;
      one.started = false;
      getcontext(&one.context);
      one.context.uc_stack.ss_sp = one.stack.get();
      one.context.uc_stack.ss_size = stack_bytes;
      one.context.uc_link = nullptr;
      makecontext(&one.context, reinterpret_cast<void (*)()>(&simulated_block::start), 2, static_cast<unsigned>(self),
                  static_cast<unsigned>(self >> 32));
    }
    begin();
    for (int left = block_threads; left > 0;) {
      int ready = 0;
      for (const int t : order_) {
        if (all[t].state != fiber::ready) continue;
        current_ = t;
        running_ = all + t;
        enter(all[t]);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        ready += all[t].state == fiber::ready;
        left -= all[t].state == fiber::done;
      }
      if (random_ != 0) shuffle();
      if (ready > 0) continue;
      if (left != 0 && left != block_threads)
        throw std::logic_error("simulator: a thread of the block left while others wait for it");
      for (int t = 0; left > 0 && t < block_threads; ++t) all[t].state = fiber::ready;
    }
  }
  [[gnu::no_sanitize_thread]] void wait() {
    running_->state = fiber::waits;
    leave(false);
  }
  [[gnu::no_sanitize_thread]] void end() {
    running_->state = fiber::done;
    leave(true);
  }
  [[gnu::no_sanitize_thread]] void give_way() {
    if (random_ != 0 && memory_->meets && random() % 4 == 0) leave(false);
  }

  [[gnu::no_sanitize_thread]] void put_in_order() {
    if (random_ != 0) return shuffle();
    constexpr struct {
      int first, step;
    } orders[] = {{0, 1}, {block_threads - 1, block_threads - 1}, {100, 77}};
    static_assert(block_threads % 2 == 0 && (block_threads & (block_threads - 1)) == 0,
                  "odd steps come to every thread");
    const auto [first, step] = orders[turn_++ % 3];
    for (int i = 0; i < block_threads; ++i) order_[i] = (first + i * step) % block_threads;
  }
  [[gnu::no_sanitize_thread]] void shuffle() {
    for (unsigned n = block_threads; n > 1; --n) {
      const std::uint64_t with = random() % n;
      const int moved = order_[n - 1];
      order_[n - 1] = order_[with];
      order_[with] = moved;
    }
  }
  /// Marsaglia, "Xorshift RNGs", 2003.
  [[gnu::no_sanitize_thread]] std::uint64_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    return random_ ^= random_ << 17;
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
    fiber& one = *running_;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &one.fake_stack, host_stack_, host_bytes_);
    swapcontext(&one.context, &host_);
    arrive(one.fake_stack);
  }
  ucontext_t host_;
  const void* host_stack_ = nullptr;
  std::size_t host_bytes_ = 0;
#elif defined(__SANITIZE_THREAD__)
  [[gnu::no_sanitize_thread]] void enter(fiber& one) {
    host_is_known_as_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(one.known_as, __tsan_switch_to_fiber_no_sync);
    swapcontext(&host_, &one.context);
  }
  void arrive(void*) {}
  [[gnu::no_sanitize_thread]] void leave(bool) {
    __tsan_switch_to_fiber(host_is_known_as_, __tsan_switch_to_fiber_no_sync);
    swapcontext(&running_->context, &host_);
  }
  ucontext_t host_;
  void* host_is_known_as_ = nullptr;
#else
  // swapcontext asks the system for the signals each time; a thread needs it only to start on its own stack.
  void enter(fiber& one) {
    if (_setjmp(back_) != 0) return;
    if (one.started) _longjmp(one.resume, 1);
    one.started = true;
    setcontext(&one.context);
  }
  void arrive(void*) {}
  void leave(bool) {
    if (_setjmp(running_->resume) == 0) _longjmp(back_, 1);
  }
  jmp_buf back_;
#endif

  struct free_memory {
    void operator()(char* p) const { std::free(p); }
  };
  /// Of the blocks of the launch: what one has shared, another one must not, until all are ordered again.
  std::vector<std::unique_ptr<char, free_memory>> memories_;
  shared_memory* memory_ = nullptr;
  index_t number_ = 0, count_ = 0;
  const void* body_ = nullptr;
  void (*body_of_thread_)(const void*, const grid&) = nullptr;
  std::unique_ptr<fiber[]> fibers_;
  fiber* running_ = nullptr;
  int current_ = 0;  ///< its number
  std::exception_ptr failure_;
  std::atomic<unsigned> begun_{0}, ended_{0};  // order the host and the threads
  int order_[block_threads];
  unsigned turn_ = 0;
  std::uint64_t random_ = finds_races;  ///< 0: the order is not
};

}  // namespace sinter::cuda_impl

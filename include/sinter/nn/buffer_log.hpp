// sinter/nn/buffer_log.hpp: buffers of modules in a computation that runs twice: the second run reads what the first
// one read, and what it writes is dropped.
#pragma once

#include <utility>
#include <vector>

#include "sinter/core/tensor.hpp"

namespace sinter::nn::detail {

/// The buffers that a computation has used, as they were before it.
struct buffer_log {
  struct entry {
    sinter::detail::storage_ptr buffer;
    sinter::detail::storage_ptr read;    ///< the memory it was read from: the buffer's, or a copy of a run around
    sinter::detail::storage_ptr before;  ///< a copy; null, after the first run, of what was only read
    std::uint64_t version;               ///< of what was read, before the first run
  };
  std::vector<entry> entries;

  entry* find(const sinter::detail::storage* buffer);
};

/// While one is alive, buffers on this thread are those of a first run, which is written down, or of a second one.
class [[nodiscard]] buffer_run {
 public:
  enum class which { first, again };

  [[nodiscard]] buffer_run(buffer_log& log, which w);
  ~buffer_run();
  buffer_run(const buffer_run&) = delete;
  buffer_run& operator=(const buffer_run&) = delete;

  static buffer_run*& current() {
    static thread_local buffer_run* run = nullptr;
    return run;
  }

  /// A buffer's value as this run sees it. Errors: autograd_error in a second run for a buffer that was written to
  /// since the first one, which only read it.
  template <class T, int R, device D>
  tensor<T, R, D> seen(const tensor<T, R, D>& buffer);

 private:
  static std::uint64_t version(const sinter::detail::storage_ptr& s) {
    return s->version.load(std::memory_order_relaxed);
  }

  buffer_log& log_;
  which which_;
  std::vector<sinter::detail::storage_ptr> own_;  ///< what a second run writes to
  buffer_run* around_;
};

template <class T, int R, device D>
tensor<T, R, D> buffer_run::seen(const tensor<T, R, D>& buffer) {
  using sinter::detail::access, sinter::detail::copy_of_memory;
  const tensor<T, R, D> outside = around_ != nullptr ? around_->seen(buffer) : buffer;
  if (!buffer.defined()) return outside;
  const auto& memory = access::storage_of(buffer);
  const auto& read = access::storage_of(outside);
  buffer_log::entry* const e = log_.find(memory.get());
  if (which_ == which::first) {
    if (e == nullptr) log_.entries.push_back({memory, read, copy_of_memory<D>(read->data, read->bytes), version(read)});
    return outside;
  }
  if (e == nullptr) return outside;
  if (!e->before) {
    if (version(read) != e->version)
      sinter::detail::refuse<autograd_error>(
          {"checkpoint: a buffer of shape ", buffer.shape(),
           " was written to after the call; its backward runs the function again and needs what it read"});
    return outside;
  }
  auto& own = own_[static_cast<std::size_t>(e - log_.entries.data())];
  if (!own) own = copy_of_memory<D>(e->before->data, e->before->bytes);
  const auto offset = reinterpret_cast<const char*>(access::data(buffer)) - static_cast<const char*>(memory->data);
  return access::make<T, R, D>(own, reinterpret_cast<T*>(static_cast<char*>(own->data) + offset), buffer.shape(),
                               buffer.strides());
}

#if SINTER_DEFINES

SINTER_SHARED buffer_log::entry* buffer_log::find(const sinter::detail::storage* buffer) {
  for (entry& e : entries)
    if (e.buffer.get() == buffer) return &e;
  return nullptr;
}

SINTER_SHARED buffer_run::buffer_run(buffer_log& log, which w)
    : log_(log),
      which_(w),
      own_(w == which::again ? log.entries.size() : 0),
      around_(std::exchange(current(), this)) {}  // the last, as what throws before ends no run
SINTER_SHARED buffer_run::~buffer_run() {
  current() = around_;
  if (which_ != which::first) return;
  for (buffer_log::entry& e : log_.entries) {
    if (e.read.get() == e.buffer.get() && version(e.read) == e.version) e.before = {};
    e.read = {};
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::nn::detail

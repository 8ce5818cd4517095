// sinter/core/work_log.hpp: what was computed when, written down while a profile lives; see io/profile.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "sinter/core/platform.hpp"
#include "sinter/core/types.hpp"

namespace sinter::detail {

/// The names of what is computed together, the outermost first; null behind the last.
using work_names = std::array<const char*, 4>;

/// One kernel or pass. Without initial values, so that a log that is closed costs none.
struct work_record {
  const char* kind;  ///< "forward", "backward", "update"
  work_names names;
  int rank;
  index_t shape[max_rank];  ///< of the result
  int thread;
  std::int64_t begin, end;  ///< nanoseconds
  std::int64_t inside;      ///< of which other records account for so many
  double multiply_adds, bytes;
};

/// The records of all threads since it was opened.
class work_log {
 public:
  static constexpr std::size_t most = std::size_t{1} << 20;

  /// The one of this program.
  static work_log& get() {
    static work_log log;
    return log;
  }
  static bool is_open() noexcept { return open_.load(std::memory_order_relaxed); }

  /// False where it is open.
  bool open();
  /// The records, in the order in which they ended; `lost` counts those for which there was no room.
  std::vector<work_record> close(std::uint64_t& lost);
  void add(work_record r) noexcept;

 private:
  /// Counts threads in the order in which they first asked.
  static int number_of_thread() noexcept {
    static constinit std::atomic<int> threads{0};
    static constinit thread_local int number = -1;
    if (number < 0) number = threads.fetch_add(1);
    return number;
  }

  static inline constinit std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::vector<work_record> records_;
  std::uint64_t lost_ = 0;
};

/// Writes down what happens while it lives, if the log is open.
class logged_work {
 public:
  logged_work(const char* kind, const work_names& names, const index_t* shape, int rank) noexcept {
    if (work_log::is_open()) begin(kind, names, shape, rank);
  }
  logged_work(const logged_work&) = delete;
  logged_work& operator=(const logged_work&) = delete;
  ~logged_work() {
    if (is_logged_) end();
  }

  /// The innermost of this thread.
  static logged_work*& now() noexcept {
    static constinit thread_local logged_work* work = nullptr;
    return work;
  }
  work_record record;

 private:
  void begin(const char* kind, const work_names& names, const index_t* shape, int rank) noexcept;
  void end() noexcept;

  bool is_logged_ = false;
  logged_work* outer_ = nullptr;
};

/// Adds to the innermost record of this thread.
inline void count_work(double multiply_adds, double bytes) noexcept {
  if (!work_log::is_open()) return;
  if (logged_work* const work = logged_work::now(); work != nullptr) {
    work->record.multiply_adds += multiply_adds;
    work->record.bytes += bytes;
  }
}

/// Gives the innermost record of this thread a shape, if it has none: an entry of the tape does not know its result's.
inline void note_shape_of_work(const index_t* shape, int rank) noexcept {
  if (!work_log::is_open()) return;
  logged_work* const work = logged_work::now();
  if (work == nullptr || work->record.rank > 0) return;
  work->record.rank = rank;
  for (int d = 0; d < rank; ++d) work->record.shape[d] = shape[d];
}

#if SINTER_DEFINES

SINTER_SHARED_COLD bool work_log::open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (open_.load()) return false;
  records_.clear();
  lost_ = 0;
  open_.store(true);
  return true;
}
SINTER_SHARED_COLD std::vector<work_record> work_log::close(std::uint64_t& lost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.store(false);
  lost = lost_;
  return std::move(records_);
}
SINTER_SHARED_COLD void work_log::add(work_record r) noexcept {
  r.thread = number_of_thread();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!open_.load(std::memory_order_relaxed)) return;
  try {
    if (records_.size() < most) return records_.push_back(r);
  } catch (...) {  // NOLINT: no memory
  }
  ++lost_;
}
SINTER_SHARED_COLD void logged_work::begin(const char* kind, const work_names& names, const index_t* shape,
                                           int rank) noexcept {
  is_logged_ = true;
  outer_ = std::exchange(now(), this);
  record = work_record{};
  record.kind = kind;
  record.names = names;
  record.rank = rank;
  for (int d = 0; d < rank; ++d) record.shape[d] = shape[d];
  record.begin = steady_nanoseconds();
}
SINTER_SHARED_COLD void logged_work::end() noexcept {
  record.end = steady_nanoseconds();
  now() = outer_;
  if (outer_ != nullptr) outer_->record.inside += record.end - record.begin;
  work_log::get().add(record);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

// sinter/random/draw_log.hpp: the same draws for several computations: replicas, microbatches, a part that runs again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "sinter/core/error.hpp"
#include "sinter/random/generator.hpp"

namespace sinter::detail {

/// The keys that one computation takes from its generators, in order. The others take theirs from here, each from the
/// first on, and wait for those that are not there yet.
class draw_log {
 public:
  draw_log();
  draw_log(const draw_log&) = delete;
  draw_log& operator=(const draw_log&) = delete;
  ~draw_log();

  void add(const random_key& key);
  /// No further keys will come.
  void close();
  random_key at(std::size_t i);

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<random_key> keys_;
  bool closed_ = false;
};

class draw_source;
/// Where this thread's draws come from; null: from the generators that are passed.
inline draw_source*& current_draws() {
  static thread_local draw_source* source = nullptr;
  return source;
}

/// While one is alive, draws on this thread are written to a log, or are those of the log.
class [[nodiscard]] draw_source {
 public:
  enum class role { writes, repeats };

  [[nodiscard]] draw_source(draw_log& log, role r) : draw_source(log, r, current_draws()) {}
  /// `outer`: where the log's own keys come from, that of the thread which waits for this one.
  [[nodiscard]] draw_source(draw_log& log, role r, draw_source* outer);
  ~draw_source();
  draw_source(const draw_source&) = delete;
  draw_source& operator=(const draw_source&) = delete;

  random_key next(generator& gen);

 private:
  draw_log& log_;
  role role_;
  std::size_t position_ = 0;
  draw_source *outer_, *before_;
};

/// The next key of a generator, or that of the draw which this one repeats.
inline random_key draw_key(generator& gen) {
  draw_source* const source = current_draws();
  if (source != nullptr) return source->next(gen);
  note_before_draw(gen);
  return gen.next();
}

#if SINTER_DEFINES

SINTER_SHARED draw_log::draw_log() = default;
SINTER_SHARED draw_log::~draw_log() = default;
SINTER_SHARED void draw_log::add(const random_key& key) {
  const std::lock_guard lock(mutex_);
  keys_.push_back(key);
  added_.notify_all();
}
SINTER_SHARED void draw_log::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  added_.notify_all();
}
SINTER_SHARED random_key draw_log::at(std::size_t i) {
  std::unique_lock lock(mutex_);
  added_.wait(lock, [&] { return closed_ || i < keys_.size(); });
  if (i >= keys_.size())
    refuse<value_error>({"draw number ", static_cast<index_t>(i), ": the computation that this one repeats drew only ",
                         static_cast<index_t>(keys_.size()), " times; draw in every part and in every run alike"});
  return keys_[i];
}

SINTER_SHARED draw_source::draw_source(draw_log& log, role r, draw_source* outer)
    : log_(log), role_(r), outer_(outer), before_(current_draws()) {
  current_draws() = this;
}
SINTER_SHARED draw_source::~draw_source() {
  if (role_ == role::writes) log_.close();
  current_draws() = before_;
}
SINTER_SHARED random_key draw_source::next(generator& gen) {
  if (role_ == role::repeats) return log_.at(position_++);
  if (outer_ == nullptr) note_before_draw(gen);
  const random_key key = outer_ != nullptr ? outer_->next(gen) : gen.next();
  log_.add(key);
  return key;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

// sinter/io/progress.hpp: how far a loop has come: a bar on a terminal, one plain line at the end elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "sinter/core/platform.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

using detail::is_terminal;

/// Draws itself at most 20 times a second, so that advance() may be called for every batch.
///
///     progress_bar bar("epoch 1", loader.size());
///     for (...) bar.advance();
///     bar.finish("loss 0.31");             // leaves the line "epoch 1  loss 0.31"
class progress_bar {
 public:
  progress_bar(std::string label, index_t total, std::FILE* to = stdout);
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar();

  void advance(index_t steps = 1);

  /// Replaces the bar by the label and a text.
  void finish(const std::string& text = "");

 private:
  using clock = std::chrono::steady_clock;

  void draw();
  void clear();

  std::string label_;
  index_t total_, done_ = 0;
  std::FILE* to_;
  bool live_;
  clock::time_point start_ = clock::now(), drawn_{};
};

#if SINTER_DEFINES

SINTER_SHARED progress_bar::progress_bar(std::string label, index_t total, std::FILE* to)
    : label_(std::move(label)), total_(total > 0 ? total : 1), to_(to), live_(is_terminal(to)) {
  if (live_) draw();
}
SINTER_SHARED progress_bar::~progress_bar() {
  if (live_) clear();
}
SINTER_SHARED void progress_bar::advance(index_t steps) {
  done_ = done_ + steps < total_ ? done_ + steps : total_;
  if (live_ && clock::now() - drawn_ > std::chrono::milliseconds(50)) draw();
}
SINTER_SHARED void progress_bar::finish(const std::string& text) {
  if (live_) clear();
  live_ = false;
  std::fprintf(to_, "%s%s%s\n", label_.c_str(), text.empty() ? "" : "  ", text.c_str());
  std::fflush(to_);
}
SINTER_SHARED void progress_bar::draw() {
  constexpr index_t width = 32;
  const index_t full = done_ * width / total_;
  const double elapsed = std::chrono::duration<double>(clock::now() - start_).count();
  char rest[32] = "";
  if (done_ > 0 && elapsed > 0.5)
    std::snprintf(rest, sizeof rest, "  %.0f s left",
                  elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_));
  std::fprintf(
      to_, "\r%s [%s%s] %3d%%%s\x1b[K", label_.c_str(), std::string(static_cast<std::size_t>(full), '#').c_str(),
      std::string(static_cast<std::size_t>(width - full), '.').c_str(), static_cast<int>(done_ * 100 / total_), rest);
  std::fflush(to_);
  drawn_ = clock::now();
}
SINTER_SHARED void progress_bar::clear() {
  std::fputs("\r\x1b[K", to_);
  std::fflush(to_);
}

#endif  // SINTER_DEFINES

}  // namespace sinter

// tests/watchdog.hpp: ends a program that waits for ever, and says where.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

/// While it lives, the program must come to at() again within some seconds.
class watchdog {
 public:
  explicit watchdog(const char* of, double seconds = 60) : of_(of), limit_(seconds), thread_([this] { watch(); }) {}
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  void at(long point) {
    const std::lock_guard lock(mutex_);
    point_ = point;
    changed_.notify_all();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (changed_.wait_for(lock, limit_) != std::cv_status::timeout || ended_) continue;
      std::fprintf(stderr, "%s: point %ld did not end within %g seconds\n", of_, point_, limit_.count());
      std::abort();
    }
  }

  const char* of_;
  std::chrono::duration<double> limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  long point_ = -1;
  bool ended_ = false;
  std::thread thread_;
};

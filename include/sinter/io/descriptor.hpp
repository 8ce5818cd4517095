// sinter/io/descriptor.hpp: open files as the system knows them; calls that a signal interrupts start again.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "sinter/core/error.hpp"

namespace sinter::detail {

SINTER_COLD inline std::string system_text(int code) { return std::generic_category().message(code); }

/// The result of a system call, made again for as long as signals interrupt it.
template <class F>
auto restarted(F call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Owns an open file; -1: none.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ != -1; }

  /// The error of closing, 0 if there is none. A close that a signal interrupts has closed the file all the same.
  int close() {
    const int number = std::exchange(number_, -1);
    return number == -1 || ::close(number) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int number_ = -1;
};

/// Not open, with errno set, if the system refuses.
inline descriptor open_file(const std::string& path, int flags, mode_t mode = 0) {
  return descriptor(restarted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
}

/// Up to n bytes; 0 at the end; -1 with errno set on failure.
inline ssize_t read_some(const descriptor& from, void* to, std::size_t n) {
  return restarted([&] { return ::read(from.get(), to, n); });
}

/// Writes all bytes; returns the error, or 0.
inline int write_all(const descriptor& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = restarted([&] { return ::write(to.get(), bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Reads n bytes from a place in the file; returns how many there were, or -1 with errno set.
SINTER_COLD inline ssize_t read_at(const descriptor& from, void* to, std::size_t n, std::size_t place) {
  std::size_t total = 0;
  while (total < n) {
    const ssize_t got = restarted([&] {
      return ::pread(from.get(), static_cast<char*>(to) + total, n - total, static_cast<off_t>(place + total));
    });
    if (got < 0) return -1;
    if (got == 0) break;
    total += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(total);
}

}  // namespace sinter::detail

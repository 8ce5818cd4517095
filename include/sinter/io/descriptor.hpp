// sinter/io/descriptor.hpp: open files as the system knows them; calls that a signal interrupts start again. What
// Windows does otherwise stands here, in mapping.hpp and in write.hpp.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#if defined(_WIN32)
#include <io.h>

#include <mutex>
#else
#include <unistd.h>
#endif

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

#if defined(_WIN32)
using file_info = struct ::_stat64;
inline constexpr const char* ends_of_folders = "/\\";
inline constexpr int flags_of_all_files = _O_BINARY | _O_NOINHERIT;
#else
using file_info = struct ::stat;
inline constexpr const char* ends_of_folders = "/";
inline constexpr int flags_of_all_files = O_CLOEXEC | O_NOCTTY;
#endif

/// What the system says of a file; false with errno set if there is none, or it says nothing.
inline bool tell_file(const char* path, file_info& info) {
#if defined(_WIN32)
  return ::_stat64(path, &info) == 0;
#else
  return ::stat(path, &info) == 0;
#endif
}
inline bool tell_file(const descriptor& file, file_info& info) {
#if defined(_WIN32)
  return ::_fstat64(file.get(), &info) == 0;
#else
  return ::fstat(file.get(), &info) == 0;
#endif
}
inline bool is_regular(const file_info& info) { return S_ISREG(info.st_mode); }
inline bool is_folder(const file_info& info) { return S_ISDIR(info.st_mode); }

/// Makes one folder; 0, or -1 with errno set.
inline int make_folder(const std::string& path) {
#if defined(_WIN32)
  return ::_mkdir(path.c_str());
#else
  return ::mkdir(path.c_str(), 0777);
#endif
}

/// Not open, with errno set, if the system refuses.
inline descriptor open_file(const std::string& path, int flags, int mode = 0) {
  return descriptor(restarted([&] { return ::open(path.c_str(), flags | flags_of_all_files, mode); }));
}

/// Up to n bytes; 0 at the end; -1 with errno set on failure.
inline ssize_t read_some(const descriptor& from, void* to, std::size_t n) {
#if defined(_WIN32)
  return ::_read(from.get(), to, n < (1u << 30) ? static_cast<unsigned>(n) : 1u << 30);
#else
  return restarted([&] { return ::read(from.get(), to, n); });
#endif
}

/// Writes all bytes; returns the error, or 0.
inline int write_all(const descriptor& to, std::string_view bytes) {
  while (!bytes.empty()) {
    constexpr std::size_t most = std::size_t{1} << 30;  // Windows counts in 32 bits
    const ssize_t written = restarted([&] {
      return ::write(to.get(), bytes.data(), static_cast<unsigned>(bytes.size() < most ? bytes.size() : most));
    });
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Cuts a file; returns the error, or 0.
inline int set_file_size(const descriptor& file, std::uint64_t size) {
#if defined(_WIN32)
  return ::_chsize_s(file.get(), static_cast<long long>(size));
#else
  return restarted([&] { return ::ftruncate(file.get(), static_cast<off_t>(size)); }) == 0 ? 0 : errno;
#endif
}

/// Reads n bytes from a place in the file; returns how many there were, or -1 with errno set.
SINTER_COLD inline ssize_t read_at(const descriptor& from, void* to, std::size_t n, std::size_t place) {
  std::size_t total = 0;
  while (total < n) {
#if defined(_WIN32)
    static std::mutex moving;  // the place of a file is one for all threads
    const std::lock_guard lock(moving);
    if (::_lseeki64(from.get(), static_cast<long long>(place + total), SEEK_SET) < 0) return -1;
    const ssize_t got = read_some(from, static_cast<char*>(to) + total, n - total);
#else
    const ssize_t got = restarted([&] {
      return ::pread(from.get(), static_cast<char*>(to) + total, n - total, static_cast<off_t>(place + total));
    });
#endif
    if (got < 0) return -1;
    if (got == 0) break;
    total += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(total);
}

}  // namespace sinter::detail

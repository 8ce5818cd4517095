// sinter/io/gzip.hpp: unpacks gzip: by zlib where SINTER_WITH_ZLIB is defined as 1, otherwise by the program gzip.
#pragma once

#if !defined(_WIN32)
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#endif

#include "sinter/io/descriptor.hpp"

#if SINTER_WITH_ZLIB
#include <zlib.h>

#include <memory>
#endif

namespace sinter::detail {

[[noreturn]] SINTER_COLD inline void refuse_gzip(const std::string& path) {
  refuse<io_error>({path, ": the file is cut short or not in gzip format"});
}

#if defined(_WIN32)

/// Windows has no program gzip.
class gzip_program {
 public:
  SINTER_COLD gzip_program(const std::string& path, const descriptor&) {
    refuse<io_error>({path, ": needs zlib (SINTER_WITH_ZLIB) on this system; compile with it or unpack the file"});
  }
  std::size_t read(void*, std::size_t) { return 0; }
};

#else

/// Its own pipe brings the exit status of gzip: what wait would say is lost where the program ignores SIGCHLD or reaps
/// every child by itself.
class gzip_program {
 public:
  SINTER_COLD gzip_program(std::string path, descriptor file) : path_(std::move(path)) {
    auto [unpacked, unpacked_end] = new_pipe();
    auto [status, status_end] = new_pipe();
    file = above_standard(std::move(file));
    unpacked_ = std::move(unpacked), status_ = std::move(status);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&files, file.get(), 0);
    ::posix_spawn_file_actions_adddup2(&files, unpacked_end.get(), 1);
    ::posix_spawn_file_actions_adddup2(&files, status_end.get(), 2);
    // A shell that starts with SIGCHLD ignored cannot tell how gzip ended; one that ignores SIGPIPE never stops
    // writing.
    sigset_t set;
    ::sigemptyset(&set);
    ::posix_spawnattr_setsigmask(&attributes, &set);
    ::sigaddset(&set, SIGCHLD);
    ::sigaddset(&set, SIGPIPE);
    ::posix_spawnattr_setsigdefault(&attributes, &set);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char shell[] = "sh", option[] = "-c", script[] = "gzip -dc 2>/dev/null; echo $? >&2";
    char* const words[] = {shell, option, script, nullptr};
    const int problem = ::posix_spawn(&child_, "/bin/sh", &files, &attributes, words, ::environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (problem != 0) refuse<io_error>({path_, ": cannot start gzip: ", system_text(problem)});
  }
  gzip_program(const gzip_program&) = delete;
  gzip_program& operator=(const gzip_program&) = delete;
  ~gzip_program() {
    unpacked_.close(), status_.close();  // so that a gzip that still writes ends
    int code;
    restarted([&] { return ::waitpid(child_, &code, 0); });
  }

  /// Between 1 and n bytes; 0 after the last.
  SINTER_COLD std::size_t read(void* to, std::size_t n) {
    const ssize_t got = read_some(unpacked_, to, n);
    if (got < 0) refuse<io_error>({path_, ": reading failed: ", system_text(errno)});
    if (got > 0) return static_cast<std::size_t>(got);
    std::string status;
    char digit;
    while (read_some(status_, &digit, 1) == 1) status += digit;
    if (status == "127\n")
      refuse<io_error>(
          {path_,
           ": needs zlib (SINTER_WITH_ZLIB) or the program gzip, which was not found; install it or unpack the file"});
    if (status != "0\n") refuse_gzip(path_);
    return 0;
  }

 private:
  /// dup2 to 0, 1 and 2 in turn must not overwrite a source, as it would in a program that has closed some of those.
  static descriptor above_standard(descriptor file) {
    if (file.get() > 2) return file;
    return descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 3));
  }

  std::pair<descriptor, descriptor> new_pipe() const {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse<io_error>({path_, ": cannot start gzip: ", system_text(errno)});
    return {above_standard(descriptor(ends[0])), above_standard(descriptor(ends[1]))};
  }

  std::string path_;
  descriptor unpacked_, status_;
  pid_t child_ = -1;
};

#endif  // _WIN32

// Both have names of their own, so that a program may hold files compiled with zlib and without.
#if SINTER_WITH_ZLIB

class zlib_unpacker {
 public:
  SINTER_COLD zlib_unpacker(std::string path, descriptor file)
      : path_(std::move(path)), file_(std::move(file)), packed_(new unsigned char[piece]) {
    constexpr int gzip_only = 16;
    if (::inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK)
      refuse<out_of_memory>({path_, ": no memory to unpack it in"});
  }
  zlib_unpacker(const zlib_unpacker&) = delete;
  zlib_unpacker& operator=(const zlib_unpacker&) = delete;
  ~zlib_unpacker() { ::inflateEnd(&stream_); }

  /// Between 1 and n bytes; 0 after the last. A file is one or more members, and perhaps zeros up to a whole block.
  SINTER_COLD std::size_t read(void* to, std::size_t n) {
    constexpr std::size_t most = std::size_t{1} << 30;  // zlib counts in 32 bits
    const auto room = static_cast<uInt>(n < most ? n : most);
    stream_.next_out = static_cast<Bytef*>(to);
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0 && !fill()) {
        if (place_ == place::start || place_ == place::member) refuse_gzip(path_);
        return 0;
      }
      if (place_ >= place::between && *stream_.next_in == 0) {
        place_ = place::padding;
        ++stream_.next_in, --stream_.avail_in;
        continue;
      }
      if (place_ == place::padding) refuse_gzip(path_);
      place_ = place::member;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_MEM_ERROR) refuse<out_of_memory>({path_, ": no memory to unpack it in"});
      if (code != Z_OK && code != Z_STREAM_END) refuse_gzip(path_);
      if (code == Z_STREAM_END) {
        place_ = place::between;
        ::inflateReset(&stream_);
      }
    }
    return room - stream_.avail_out;
  }

 private:
  static constexpr std::size_t piece = std::size_t{1} << 16;

  bool fill() {
    const ssize_t got = read_some(file_, packed_.get(), piece);
    if (got < 0) refuse<io_error>({path_, ": reading failed: ", system_text(errno)});
    stream_.next_in = packed_.get();
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  std::string path_;
  descriptor file_;
  std::unique_ptr<unsigned char[]> packed_;
  z_stream stream_{};
  enum class place { start, member, between, padding } place_ = place::start;  // padding: zeros after the last member
};

using gzip_unpacker = zlib_unpacker;

#else

using gzip_unpacker = gzip_program;

#endif

}  // namespace sinter::detail

// sinter/io/file.hpp: reads files whole or piece by piece, gzip by suffix.
#pragma once

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#if defined(_WIN32)
#define SINTER_DETAIL_POPEN _popen
#define SINTER_DETAIL_PCLOSE _pclose
#else
#include <sys/stat.h>
#include <unistd.h>
#define SINTER_DETAIL_POPEN popen
#define SINTER_DETAIL_PCLOSE pclose
#endif

#include "sinter/io/descriptor.hpp"

namespace sinter::detail {

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// 'path' for a POSIX shell.
SINTER_COLD inline std::string shell_quoted(const std::string& path) {
  std::string quoted = "'";
  for (char c : path) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

/// Reads a file from its beginning; one whose name ends in .gz through `gzip -dc`.
class byte_source {
 public:
  SINTER_COLD explicit byte_source(std::string path) : path_(std::move(path)), piped_(ends_with(path_, ".gz")) {
    file_ = std::fopen(path_.c_str(), "rb");
    if (file_ == nullptr) refuse<io_error>({path_, ": cannot open for reading: ", system_text(errno)});
#if !defined(_WIN32)
    struct stat info;
    if (::fstat(::fileno(file_), &info) == 0 && S_ISDIR(info.st_mode)) {
      std::fclose(file_);
      refuse<io_error>({path_, ": is a directory, not a file"});
    }
#endif
    if (!piped_) return;
    std::fclose(file_);
    file_ = SINTER_DETAIL_POPEN(("gzip -dc < " + shell_quoted(path_) + " 2>/dev/null").c_str(), "r");
    if (file_ == nullptr) refuse<io_error>({path_, ": cannot start gzip: ", system_text(errno)});
  }
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;
  ~byte_source() {
    if (file_ != nullptr) close_file();
  }

  const std::string& path() const { return path_; }

  /// Up to n bytes; fewer only at the end of the file.
  SINTER_COLD std::size_t read(void* to, std::size_t n) {
    const std::size_t got = std::fread(to, 1, n, file_);
    if (got < n) {
      if (std::ferror(file_)) refuse<io_error>({path_, ": reading failed: ", system_text(errno)});
      const int code = close_file();
      file_ = nullptr;
      if (piped_ && code == 127 * 256)
        refuse<io_error>({path_, ": needs the program gzip, which was not found; install it or unpack the file"});
      if (piped_ && code != 0) refuse<io_error>({path_, ": gzip -dc failed; the file is cut short or not in gzip format"});
    }
    return got;
  }
  bool at_end() const { return file_ == nullptr; }

 private:
  int close_file() { return piped_ ? SINTER_DETAIL_PCLOSE(file_) : std::fclose(file_); }

  std::string path_;
  bool piped_;
  std::FILE* file_ = nullptr;
};

/// Adds up to n more bytes of the source to `to`, in pieces, so that memory grows with what is really there.
SINTER_COLD inline std::size_t read_more(byte_source& source, std::string& to, std::size_t n) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::size_t total = 0;
  while (total < n && !source.at_end()) {
    const std::size_t want = n - total < piece ? n - total : piece;
    const std::size_t old = to.size();
    to.resize(old + want);
    const std::size_t got = source.read(to.data() + old, want);
    to.resize(old + got);
    total += got;
  }
  return total;
}

SINTER_COLD inline std::string read_file(const std::string& path) {
  byte_source source(path);
  std::string bytes;
  read_more(source, bytes, std::size_t(-1));
  return bytes;
}

}  // namespace sinter::detail

#undef SINTER_DETAIL_POPEN
#undef SINTER_DETAIL_PCLOSE

// sinter/io/file.hpp: reads files whole or piece by piece, those whose names end in .gz unpacked.
#pragma once

#include <optional>

#include "sinter/core/types.hpp"
#include "sinter/io/gzip.hpp"

namespace sinter {

/// What a .gz file may unpack to, in bytes, unless an option says otherwise: 4 GiB.
inline constexpr index_t default_max_unpacked = index_t{4} << 30;

namespace detail {

/// Reads a file from its beginning. A name that ends in .gz is unpacked, to at most `max_unpacked` bytes.
template <class Unpacker>
class basic_byte_source {
 public:
  SINTER_COLD explicit basic_byte_source(std::string path, index_t max_unpacked = default_max_unpacked)
      : path_(std::move(path)), limit_(max_unpacked) {
    if (limit_ < 0) refuse<value_error>({path_, ": max_unpacked is ", limit_, "; it must not be negative"});
    file_ = open_file(path_, O_RDONLY);
    if (!file_.is_open()) refuse<io_error>({path_, ": cannot open for reading: ", system_text(errno)});
    file_info info;
    if (tell_file(file_, info) && is_folder(info)) refuse<io_error>({path_, ": is a directory, not a file"});
    if (path_.ends_with(".gz")) unpacker_.emplace(path_, std::move(file_));
  }

  /// Up to n bytes; fewer only at the end of the file.
  SINTER_COLD std::size_t read(void* to, std::size_t n) {
    std::size_t total = 0;
    while (total < n && !at_end_) {
      char* const next = static_cast<char*>(to) + total;
      const std::size_t got = unpacker_ ? unpacker_->read(next, n - total) : read_plain(next, n - total);
      at_end_ = got == 0;
      total += got;
    }
    count_ += static_cast<index_t>(total);
    if (unpacker_ && count_ > limit_)
      refuse<io_error>({path_, ": unpacks to more than ", limit_, " bytes; max_unpacked in the options allows more"});
    return total;
  }
  bool at_end() const { return at_end_; }

 private:
  std::size_t read_plain(void* to, std::size_t n) {
    const ssize_t got = read_some(file_, to, n);
    if (got < 0) refuse<io_error>({path_, ": reading failed: ", system_text(errno)});
    return static_cast<std::size_t>(got);
  }

  std::string path_;
  index_t limit_, count_ = 0;
  descriptor file_;
  std::optional<Unpacker> unpacker_;
  bool at_end_ = false;
};

using byte_source = basic_byte_source<gzip_unpacker>;

/// Adds up to n more bytes of the source to `to`, in pieces, so that memory grows with what is really there.
template <class Source>
SINTER_COLD std::size_t read_more(Source& source, std::string& to, std::size_t n) {
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

template <class Source = byte_source>
SINTER_COLD std::string read_file(const std::string& path, index_t max_unpacked = default_max_unpacked) {
  Source source(path, max_unpacked);
  std::string bytes;
  read_more(source, bytes, std::size_t(-1));
  return bytes;
}

}  // namespace detail
}  // namespace sinter

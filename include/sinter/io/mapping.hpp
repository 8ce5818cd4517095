// sinter/io/mapping.hpp: files mapped into memory, and tensors over them.
#pragma once

#if !defined(_WIN32)
#include <sys/mman.h>
#endif

#include <memory>

#include "sinter/core/storage.hpp"
#include "sinter/io/descriptor.hpp"

namespace sinter::detail {

/// The bytes of a file in memory. Pages are read when they are touched, on Windows all at once; what is written to them
/// stays in this process.
class file_mapping {
 public:
  SINTER_COLD file_mapping(const std::string& path, const descriptor& file, std::size_t size) : size_(size) {
#if defined(_WIN32)
    auto whole = std::make_unique_for_overwrite<char[]>(size);
    if (const ssize_t got = read_at(file, whole.get(), size, 0); got < 0 || static_cast<std::size_t>(got) < size)
      refuse<io_error>({path, ": cannot be read: ", got < 0 ? system_text(errno) : "it was cut short"});
    data_ = whole.release();
#else
#if defined(MAP_NORESERVE)
    const int flags = MAP_PRIVATE | MAP_NORESERVE;
#else
    const int flags = MAP_PRIVATE;
#endif
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file.get(), 0);
    if (data_ == MAP_FAILED) refuse<io_error>({path, ": cannot be mapped into memory: ", system_text(errno)});
#endif
  }
  file_mapping(const file_mapping&) = delete;
  file_mapping& operator=(const file_mapping&) = delete;
#if defined(_WIN32)
  ~file_mapping() { delete[] data(); }
#else
  ~file_mapping() { ::munmap(data_, size_); }
#endif

  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_;
  std::size_t size_;
};

/// Storage of a tensor inside a mapping, which it keeps.
SINTER_COLD inline storage_ptr mapped_storage(std::shared_ptr<const file_mapping> mapping, void* data,
                                              std::size_t bytes) {
  auto* const s = new owning_storage<std::shared_ptr<const file_mapping>>(data, bytes);
  s->owner = std::move(mapping);
  return storage_ptr(s);
}

}  // namespace sinter::detail

// sinter/io/idx.hpp: the idx format of MNIST: a type, the extents, and the elements, big-endian.
#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/core/create.hpp"
#include "sinter/io/file.hpp"

namespace sinter {

namespace detail {

template <class T>
constexpr int idx_code() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return 0x08;
  if constexpr (std::is_same_v<T, std::int8_t>) return 0x09;
  if constexpr (std::is_same_v<T, std::int16_t>) return 0x0B;
  if constexpr (std::is_same_v<T, std::int32_t>) return 0x0C;
  if constexpr (std::is_same_v<T, float>) return 0x0D;
  if constexpr (std::is_same_v<T, double>) return 0x0E;
  return 0;
}

inline const char* idx_type(int code) {
  const char* const names[] = {"uint8", "int8", nullptr, "int16", "int32", "float", "double"};
  return code >= 0x08 && code <= 0x0E ? names[code - 0x08] : nullptr;
}

}  // namespace detail

struct idx_options {
  index_t max_unpacked = default_max_unpacked;  ///< bytes that a .gz file may hold
};

/// The idx file of elements T and rank R, as it is or (a name ending in .gz) compressed. The header is not trusted:
/// memory grows with the bytes that are there. Errors: io_error for a file that is not idx, holds another type or rank,
/// or is shorter or longer than its header says.
///
///     tensor images = read_idx<std::uint8_t, 3>("train-images-idx3-ubyte.gz");   // (60000, 28, 28)
template <element T, int R>
  requires(detail::idx_code<T>() != 0 && R >= 1)
SINTER_COLD tensor<T, R> read_idx(const std::string& path, const idx_options& options = {}) {
  detail::byte_source source(path, options.max_unpacked);
  unsigned char head[std::size_t{4 + 4 * R}];
  if (source.read(head, 4) < 4) detail::refuse<io_error>({path, ": cut short: no idx header"});
  const char* const type = detail::idx_type(head[2]);
  if (head[0] != 0 || head[1] != 0 || type == nullptr || head[3] == 0)
    detail::refuse<io_error>({path, ": not an idx file"});
  if (head[2] != detail::idx_code<T>())
    detail::refuse<io_error>({path, ": holds elements of type ", type, ", not ", element_name<T>()});
  if (head[3] != R) detail::refuse<io_error>({path, ": holds a tensor of rank ", int{head[3]}, ", not ", R});
  if (source.read(head + 4, 4 * R) < 4 * R) detail::refuse<io_error>({path, ": cut short: incomplete idx header"});
  extents<R> shape;
  for (int d = 0; d < R; ++d) {
    const unsigned char* b = head + 4 + 4 * d;
    shape[d] = index_t{b[0]} << 24 | index_t{b[1]} << 16 | index_t{b[2]} << 8 | index_t{b[3]};
  }
  std::size_t bytes = 0;
  try {
    bytes = static_cast<std::size_t>(detail::checked_numel("read_idx", shape.data(), R, sizeof(T))) * sizeof(T);
  } catch (const shape_error& e) {
    detail::refuse<io_error>({path, ": ", e.what()});
  }
  std::string data;
  const std::size_t got = source.at_end() ? 0 : detail::read_more(source, data, bytes);
  char extra;
  if (got < bytes)
    detail::refuse<io_error>({path, ": cut short: ", got, " bytes of data where its shape ", shape, " needs ", bytes});
  if (!source.at_end() && source.read(&extra, 1) == 1)
    detail::refuse<io_error>({path, ": longer than its shape ", shape, " needs"});
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little)
    for (std::size_t i = 0; i < bytes; i += sizeof(T)) std::reverse(data.data() + i, data.data() + i + sizeof(T));
  auto t = tensor<T, R>::uninitialized(shape);
  if (bytes > 0) std::memcpy(t.data(), data.data(), bytes);
  return t;
}

}  // namespace sinter

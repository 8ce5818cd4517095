// sinter/io/elements.hpp: elements out of the bytes of a file, in either byte order, converted where that is asked for.
#pragma once

#include <algorithm>

#include "sinter/core/host_tensor.hpp"

namespace sinter::detail {

/// Turns the bytes of each element around.
SINTER_COLD inline void swap_bytes(char* data, std::size_t bytes, std::size_t element_size) {
  for (std::size_t i = 0; i < bytes; i += element_size) std::reverse(data + i, data + i + element_size);
}

/// Fills `to` with n elements that fetch(place, count, bytes) supplies: it writes `count` bytes of the elements, from
/// byte `place` of them on, and is called for whole elements. They are of `kind` and in the byte order of the machine,
/// or `swapped`. Needs a bounded amount of memory beside `to`. Errors: io_error for an element that does not fit T;
/// `what` begins its text.
template <element T, class Fetch>
void fetch_elements(element_kind kind, bool swapped, std::size_t n, T* to, Fetch fetch, const std::string& what) {
  if (kind == kind_of_element<T>() && !std::is_same_v<T, bool>) {
    auto* const bytes = reinterpret_cast<char*>(to);
    if (n > 0) fetch(std::size_t{0}, n * sizeof(T), bytes);
    if (swapped) swap_bytes(bytes, n * sizeof(T), sizeof(T));
    return;
  }
  const std::size_t size = element_size(kind), at_once = std::size_t{1} << 16;  // elements
  std::string piece;
  for (std::size_t i = 0; i < n; i += at_once) {
    const std::size_t count = n - i < at_once ? n - i : at_once;
    piece.resize(count * size);
    fetch(i * size, count * size, piece.data());
    if (swapped) swap_bytes(piece.data(), piece.size(), size);
    with_element(kind, [&](auto from) {
      using From = decltype(from);
      const std::size_t done = convert_elements<From>(piece.data(), count, to + i);
      if (done < count)
        refuse<io_error>({what, ": ", unfit_text<From, T>(piece.data(), done, i + done), "; read another type"});
    });
  }
}

}  // namespace sinter::detail

// sinter/parallel/even_parts.hpp: where each of several nearly equal parts begins.
#pragma once

#include <algorithm>

#include "sinter/core/types.hpp"

namespace sinter::detail {

/// Where part number `part` of n things begins: n / parts each, and one more for the first n % parts, as of
/// torch.tensor_split. Part number `parts` begins at n.
constexpr index_t begin_of_part(index_t n, index_t parts, index_t part) {
  return part * (n / parts) + std::min(part, n % parts);
}
static_assert(begin_of_part(10, 4, 1) == 3 && begin_of_part(10, 4, 2) == 6 && begin_of_part(10, 4, 3) == 8);

}  // namespace sinter::detail

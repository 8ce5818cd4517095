// sinter/core/address_map.hpp: numbers by address.
#pragma once

#include <unordered_map>

namespace sinter::detail {

/// One type for all maps from addresses: each further type of hash map costs time in every file that includes it.
using address_map = std::unordered_map<const void*, int>;

}  // namespace sinter::detail

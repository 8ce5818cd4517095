// sinter/io/instances.hpp: readers of common types, which a program with sinter::compiled holds once.
#pragma once

#include "sinter/io/csv.hpp"
#include "sinter/io/idx.hpp"
#include "sinter/io/svg.hpp"

#if SINTER_COMPILED
namespace sinter {

SINTER_INSTANCE tensor<float, 2> read_csv<float>(const std::string&, const csv_options&);
SINTER_INSTANCE tensor<std::uint8_t, 1> read_idx<std::uint8_t, 1>(const std::string&, const idx_options&);
SINTER_INSTANCE tensor<std::uint8_t, 3> read_idx<std::uint8_t, 3>(const std::string&, const idx_options&);
SINTER_INSTANCE void write_image_grid<3>(const std::string&, const tensor<std::uint8_t, 3>&,
                                         const std::vector<std::string>&, const std::string&);

}  // namespace sinter
#endif

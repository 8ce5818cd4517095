// What the headers of networks for sequences begin with.
#pragma once

#include <sinter/sinter.hpp>
#if __has_include(<sinter/sequences.hpp>)  // part of the single header, with SINTER_WITH_SEQUENCES
#include <sinter/sequences.hpp>
#endif

namespace models {

using sinter::cpu;
using sinter::device;
using sinter::index_t;
namespace nn = sinter::nn;

}  // namespace models

// sinter/nn/instances.hpp: layers of common types, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/nn/linear.hpp"

#if SINTER_COMPILED
namespace sinter::nn {

SINTER_INSTANCE struct linear<float>;

}  // namespace sinter::nn
#endif

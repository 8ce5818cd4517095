// sinter/fwd.hpp: names of the library's types, for headers that only pass them on. It takes a hundredth of the time of
// sinter.hpp.
//
//     // model.hpp
//     #include <sinter/fwd.hpp>
//     float train(const sinter::tensor<float, 2>& inputs, sinter::generator& gen);
#pragma once

#include "sinter/core/declare.hpp"

namespace sinter {

class generator;

}  // namespace sinter

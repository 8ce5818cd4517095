// sinter/math/packet.hpp: simd<T, L>, the kind of value that is L elements in Eigen's vector registers, and its words.
#pragma once

#include "sinter/math/packet_cast.hpp"
#include "sinter/math/packet_functions.hpp"
#include "sinter/math/packet_masks.hpp"
#include "sinter/math/packet_narrow.hpp"
#include "sinter/math/packet_operators.hpp"
#include "sinter/math/packet_registers.hpp"
#include "sinter/math/packet_target.hpp"
#include "sinter/math/packet_trigonometry.hpp"

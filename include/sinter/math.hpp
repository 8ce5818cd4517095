// sinter/math.hpp: the vocabulary ops are written in.
#pragma once

#include "sinter/math/inline.hpp"
#include "sinter/math/packet.hpp"
#include "sinter/math/packet_cast.hpp"
#include "sinter/math/packet_functions.hpp"
#include "sinter/math/packet_masks.hpp"
#include "sinter/math/packet_operators.hpp"
#include "sinter/math/packet_registers.hpp"
#include "sinter/math/packet_target.hpp"
#include "sinter/math/packet_trigonometry.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/math/vocabulary.hpp"

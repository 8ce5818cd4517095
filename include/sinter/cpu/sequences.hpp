// sinter/cpu/sequences.hpp: the kernels of sinter/sequences.hpp on the host.
#pragma once

#include "sinter/cpu/attention.hpp"
#include "sinter/cpu/linear_cross_entropy.hpp"
#include "sinter/cpu/recurrent.hpp"
#include "sinter/cpu/rotary.hpp"

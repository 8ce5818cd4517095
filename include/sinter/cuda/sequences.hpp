// sinter/cuda/sequences.hpp: the kernels of sinter/sequences.hpp on GPUs.
#pragma once

#include "sinter/cuda/attention.hpp"
#include "sinter/cuda/linear_cross_entropy.hpp"
#include "sinter/cuda/recurrent.hpp"
#include "sinter/cuda/rotary.hpp"

// sinter/train.hpp: a training loop with validation, early stopping and checkpoints, for those who need no other.
#pragma once

#include "sinter/config.hpp"

#include "sinter/train/fit.hpp"

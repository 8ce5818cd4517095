// sinter/train.hpp: a training loop with validation, early stopping and checkpoints, for those who need no other, and
// files for TensorBoard.
#pragma once

#include "sinter/config.hpp"

#include "sinter/train/fit.hpp"
#include "sinter/train/summary_writer.hpp"

// sinter/optim.hpp: optimizers, gradient clipping, learning-rate schedules.
#pragma once

#include "sinter/optim/adadelta.hpp"
#include "sinter/optim/adagrad.hpp"
#include "sinter/optim/adam.hpp"
#include "sinter/optim/adamax.hpp"
#include "sinter/optim/clip.hpp"
#include "sinter/optim/grad_scaler.hpp"
#include "sinter/optim/instances.hpp"
#include "sinter/optim/lion.hpp"
#include "sinter/optim/nadam.hpp"
#include "sinter/optim/optimizer.hpp"
#include "sinter/optim/rmsprop.hpp"
#include "sinter/optim/row_update.hpp"
#include "sinter/optim/saved.hpp"
#include "sinter/optim/schedule.hpp"
#include "sinter/optim/sgd.hpp"
#include "sinter/optim/update.hpp"

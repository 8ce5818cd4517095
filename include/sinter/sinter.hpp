// sinter/sinter.hpp: the whole library.
#pragma once

#include "sinter/core.hpp"
#include "sinter/expr.hpp"
#include "sinter/grad.hpp"
#include "sinter/ops.hpp"
#include "sinter/cpu.hpp"
#include "sinter/random.hpp"
#include "sinter/io.hpp"
#include "sinter/data.hpp"
#include "sinter/nn.hpp"
#include "sinter/optim.hpp"

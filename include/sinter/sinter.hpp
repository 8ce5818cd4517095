// sinter/sinter.hpp: the library without datasets (data.hpp), files (io.hpp), metrics (metrics.hpp), several devices
// (parallel.hpp), ranks (ranks.hpp), recurrence and attention (sequences.hpp), linear algebra (linalg.hpp) and a
// training loop (train.hpp).
#pragma once

#include "sinter/config.hpp"

// These come first because g++ shows, with a message about them, by which chain of includes they were reached.
#include "sinter/core/tensor.hpp"
#include "sinter/expr/declare.hpp"
#include "sinter/expr/point.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops.hpp"
#include "sinter/ops/where.hpp"

#include "sinter/core.hpp"
#include "sinter/cpu.hpp"
#include "sinter/expr.hpp"
#include "sinter/fwd.hpp"
#include "sinter/grad.hpp"
#include "sinter/math.hpp"
#if SINTER_WITH_CUDA
#include "sinter/cuda.hpp"
#endif
#if SINTER_WITH_DATA
#include "sinter/data.hpp"
#include "sinter/io.hpp"
#include "sinter/metrics.hpp"
#endif
#include "sinter/nn.hpp"
#include "sinter/optim.hpp"
#include "sinter/random.hpp"
#if SINTER_WITH_PARALLEL
#include "sinter/parallel.hpp"
#endif
#if SINTER_WITH_RANKS
#include "sinter/ranks.hpp"
#include "sinter/train.hpp"
#endif
#if SINTER_WITH_LINALG
#include "sinter/linalg.hpp"
#endif
#if SINTER_WITH_SEQUENCES
#include "sinter/sequences.hpp"
#endif

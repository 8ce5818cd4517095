// sinter/sequences.hpp: networks for sequences: recurrent layers, attention, the loss over many classes, and what they
// need.
#pragma once

#include "sinter/config.hpp"

// What a program for host devices needs beside it, in the order of sinter/sinter.hpp, which alone includes the backend
// of GPUs.
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
#include "sinter/grad.hpp"
#include "sinter/math.hpp"
#include "sinter/nn.hpp"
#include "sinter/random.hpp"

#include "sinter/cpu/sequences.hpp"
#if SINTER_WITH_CUDA
#include "sinter/cuda/sequences.hpp"
#endif
#include "sinter/ops/sequences.hpp"
#include "sinter/random/attention_dropout.hpp"

#include "sinter/sequences/cells.hpp"
#include "sinter/sequences/ctc_loss.hpp"
#include "sinter/sequences/generate.hpp"
#include "sinter/sequences/heads.hpp"
#include "sinter/sequences/instances.hpp"
#include "sinter/sequences/multihead_attention.hpp"
#include "sinter/sequences/packed_sequence.hpp"
#include "sinter/sequences/positions.hpp"
#include "sinter/sequences/recurrent.hpp"
#include "sinter/sequences/recurrent_run.hpp"
#include "sinter/sequences/state.hpp"
#include "sinter/sequences/transformer.hpp"

namespace sinter::detail {
struct sequences_header {};  // see ops/other_headers.hpp
}  // namespace sinter::detail

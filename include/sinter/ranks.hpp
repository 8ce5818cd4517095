// sinter/ranks.hpp: training on several ranks: threads, processes, machines.
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
#include "sinter/optim.hpp"
#include "sinter/random.hpp"

#include "sinter/ranks/channel.hpp"
#include "sinter/ranks/communication.hpp"
#include "sinter/ranks/communicator.hpp"
#include "sinter/ranks/distributed.hpp"
#include "sinter/ranks/gradient_buckets.hpp"
#include "sinter/ranks/gradient_exchange.hpp"
#include "sinter/ranks/hierarchical/communicator.hpp"
#include "sinter/ranks/hierarchical/transport.hpp"
#include "sinter/ranks/host_communicator.hpp"
#include "sinter/ranks/host_ranks.hpp"
#include "sinter/ranks/plan/network_model.hpp"
#include "sinter/ranks/plan/plan.hpp"
#include "sinter/ranks/plan/report.hpp"
#include "sinter/ranks/rank_buffers.hpp"
#include "sinter/ranks/rank_generators.hpp"
#include "sinter/ranks/rank_state.hpp"
#include "sinter/ranks/rank_sum.hpp"
#include "sinter/ranks/row_exchange.hpp"
#include "sinter/ranks/run_checkpoint.hpp"
#include "sinter/ranks/run_part.hpp"
#include "sinter/ranks/shard_ranks.hpp"
#include "sinter/ranks/sharded.hpp"
#if !defined(_WIN32)  // not written for its sockets
#include "sinter/ranks/socket/communicator.hpp"
#include "sinter/ranks/socket/hmac.hpp"
#include "sinter/ranks/socket/lane.hpp"
#include "sinter/ranks/socket/mesh.hpp"
#include "sinter/ranks/socket/transport.hpp"
#include "sinter/ranks/socket/wire.hpp"
#endif
#include "sinter/ranks/sync_batch_norm.hpp"
#include "sinter/ranks/thread/communicator.hpp"
#include "sinter/ranks/transport.hpp"
#if SINTER_WITH_MPI
#include "sinter/ranks/mpi/communicator.hpp"
#include "sinter/ranks/mpi/runtime.hpp"
#endif
#if SINTER_WITH_CUDA && SINTER_WITH_NCCL
#include "sinter/ranks/nccl/communicator.hpp"
#include "sinter/ranks/nccl/group.hpp"
#endif

// sinter/cpu.hpp: evaluation on the host devices.
#pragma once

#include "sinter/config.hpp"

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/conv.hpp"
#include "sinter/cpu/convolution.hpp"
#include "sinter/cpu/count.hpp"
#include "sinter/cpu/cross_entropy.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/detail/thread_topology.hpp"
#include "sinter/cpu/eigen.hpp"
#include "sinter/cpu/embedding.hpp"
#include "sinter/cpu/embedding_bag.hpp"
#include "sinter/cpu/folds.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/cpu/grid_sample.hpp"
#include "sinter/cpu/index.hpp"
#include "sinter/cpu/instances.hpp"
#include "sinter/cpu/instruction_set.hpp"
#include "sinter/cpu/loop.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/cpu/matmul.hpp"
#include "sinter/cpu/moments.hpp"
#include "sinter/cpu/pooling.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/cpu/resample.hpp"
#include "sinter/cpu/row_lanes.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/cpu/scan.hpp"
#include "sinter/cpu/sort.hpp"
#if SINTER_WITH_PARALLEL
#include "sinter/cpu/stage_threads.hpp"
#endif
#include "sinter/cpu/stock.hpp"
#include "sinter/cpu/threads.hpp"
#include "sinter/cpu/unfold.hpp"
#include "sinter/cpu/variants.hpp"
#if SINTER_WITH_SEQUENCES
#include "sinter/cpu/sequences.hpp"
#endif

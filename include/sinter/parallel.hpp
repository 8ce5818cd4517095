// sinter/parallel.hpp: models over several devices.
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

#include "sinter/parallel/advice.hpp"
#include "sinter/parallel/advise.hpp"
#include "sinter/parallel/checkpoint.hpp"
#include "sinter/parallel/copy_worker.hpp"
#include "sinter/parallel/data_parallel.hpp"
#include "sinter/parallel/even_parts.hpp"
#include "sinter/parallel/merged_moments.hpp"
#include "sinter/parallel/offloaded.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/pipeline.hpp"
#include "sinter/parallel/pipeline_report.hpp"
#include "sinter/parallel/pipeline_step.hpp"
#include "sinter/parallel/placed.hpp"
#include "sinter/parallel/placement_cost.hpp"
#include "sinter/parallel/replica_set.hpp"
#include "sinter/parallel/replicas.hpp"
#include "sinter/parallel/schedule.hpp"
#include "sinter/parallel/schedule_run.hpp"
#include "sinter/parallel/segment_times.hpp"
#include "sinter/parallel/segments.hpp"
#include "sinter/parallel/shards.hpp"
#include "sinter/parallel/split_linear.hpp"
#include "sinter/parallel/step_guard.hpp"
#include "sinter/parallel/step_times.hpp"
#include "sinter/parallel/team.hpp"
#include "sinter/parallel/tile_geometry.hpp"
#include "sinter/parallel/tile_image.hpp"
#include "sinter/parallel/tile_norm.hpp"
#include "sinter/parallel/tile_rule.hpp"
#include "sinter/parallel/tile_stage.hpp"
#include "sinter/parallel/tiles.hpp"
#include "sinter/parallel/usage.hpp"

namespace sinter::detail {
struct parallel_header {};  // see ops/other_headers.hpp
}  // namespace sinter::detail

// sinter/parallel.hpp: models over several devices.
#pragma once

#include "sinter/parallel/checkpoint.hpp"
#include "sinter/parallel/copy_worker.hpp"
#include "sinter/parallel/data_parallel.hpp"
#include "sinter/parallel/offloaded.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/replicas.hpp"
#include "sinter/parallel/shards.hpp"
#include "sinter/parallel/split_linear.hpp"
#include "sinter/parallel/team.hpp"
#include "sinter/parallel/tile_geometry.hpp"
#include "sinter/parallel/tile_image.hpp"
#include "sinter/parallel/tile_norm.hpp"
#include "sinter/parallel/tile_rule.hpp"
#include "sinter/parallel/tile_stage.hpp"
#include "sinter/parallel/tiles.hpp"

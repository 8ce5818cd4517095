// sinter/cuda.hpp: evaluation on GPUs, for files compiled by nvcc or clang's CUDA mode.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/blas.hpp"
#include "sinter/cuda/context.hpp"
#include "sinter/cuda/element.hpp"
#include "sinter/cuda/error.hpp"
#include "sinter/cuda/gpu.hpp"
#include "sinter/cuda/index.hpp"
#include "sinter/cuda/launch.hpp"
#include "sinter/cuda/map.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/cuda/reduce.hpp"
#include "sinter/cuda/rows.hpp"
#include "sinter/cuda/runtime.hpp"
#include "sinter/cuda/space.hpp"

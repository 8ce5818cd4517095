// sinter/cuda.hpp: evaluation on GPUs, for files compiled by nvcc or clang's CUDA mode.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/blas.hpp"
#include "sinter/cuda/capture.hpp"
#include "sinter/cuda/context.hpp"
#include "sinter/cuda/element.hpp"
#include "sinter/cuda/error.hpp"
#include "sinter/cuda/gpu.hpp"
#include "sinter/cuda/graph.hpp"
#include "sinter/cuda/group.hpp"
#include "sinter/cuda/kernels.hpp"
#include "sinter/cuda/launch.hpp"
#include "sinter/cuda/map.hpp"
#include "sinter/cuda/native.hpp"
#include "sinter/cuda/pairs.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/cuda/product_rules.hpp"
#include "sinter/cuda/radix_sort.hpp"
#include "sinter/cuda/reduce.hpp"
#include "sinter/cuda/runtime.hpp"
#include "sinter/cuda/scan.hpp"
#include "sinter/cuda/select.hpp"
#include "sinter/cuda/space.hpp"
#include "sinter/cuda/staging.hpp"
#if SINTER_WITH_CUDNN
#include "sinter/cuda/cudnn.hpp"
#endif
#if SINTER_WITH_CUB || SINTER_WITH_CUB_FOLDS
#include "sinter/cuda/cub.hpp"
#endif
#if SINTER_WITH_NCCL
#include "sinter/cuda/nccl.hpp"
#endif

// sinter/cuda/kernels.hpp: the list of headers with kernels of ops. cuda.hpp includes it, and so does the simulated GPU
// of the tests.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/conv.hpp"
#include "sinter/cuda/count.hpp"
#include "sinter/cuda/cross_entropy.hpp"
#include "sinter/cuda/embedding.hpp"
#include "sinter/cuda/embedding_bag.hpp"
#include "sinter/cuda/folds.hpp"
#include "sinter/cuda/grid_sample.hpp"
#include "sinter/cuda/index.hpp"
#include "sinter/cuda/matmul.hpp"
#include "sinter/cuda/moments.hpp"
#include "sinter/cuda/nonzero.hpp"
#include "sinter/cuda/pooling.hpp"
#include "sinter/cuda/resample.hpp"
#include "sinter/cuda/roi_align.hpp"
#include "sinter/cuda/rows.hpp"
#include "sinter/cuda/searchsorted.hpp"
#include "sinter/cuda/sort.hpp"
#include "sinter/cuda/unfold.hpp"
#if SINTER_WITH_SEQUENCES
#include "sinter/cuda/sequences.hpp"
#endif

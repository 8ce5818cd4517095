// sinter/data.hpp: datasets, loaders, splits, normalisation, folders of pictures and random changes of images.
#pragma once

#include "sinter/data/affine.hpp"
#include "sinter/data/augment.hpp"
#include "sinter/data/cifar10.hpp"
#include "sinter/data/color.hpp"
#include "sinter/data/dataset.hpp"
#include "sinter/data/erase.hpp"
#include "sinter/data/image_batch.hpp"
#include "sinter/data/image_folder.hpp"
#include "sinter/data/instances.hpp"
#include "sinter/data/loader.hpp"
#include "sinter/data/mix.hpp"
#include "sinter/data/normalizer.hpp"
#include "sinter/data/padded.hpp"
#include "sinter/data/sampler.hpp"
#include "sinter/data/subset.hpp"
#include "sinter/data/tensor_dataset.hpp"

namespace sinter::detail {
struct data_header {};  // see ops/other_headers.hpp
}  // namespace sinter::detail

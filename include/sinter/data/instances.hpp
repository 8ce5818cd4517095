// sinter/data/instances.hpp: loaders of common data sets, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/data/image_folder.hpp"
#include "sinter/data/loader.hpp"
#include "sinter/data/tensor_dataset.hpp"

#if SINTER_COMPILED
namespace sinter {

#define SINTER_INSTANCES_OF(R)                                                                  \
  SINTER_INSTANCE class tensor_dataset<tensor<float, R>, tensor<std::int64_t, 1>>;              \
  SINTER_INSTANCE class data_loader<tensor_dataset<tensor<float, R>, tensor<std::int64_t, 1>>>; \
  SINTER_INSTANCE class detail::loader_pass<tensor_dataset<tensor<float, R>, tensor<std::int64_t, 1>>>;
SINTER_INSTANCES_OF(2)
SINTER_INSTANCES_OF(4)
#undef SINTER_INSTANCES_OF
SINTER_INSTANCE class image_folder<float>;
SINTER_INSTANCE class data_loader<image_folder<float>>;
SINTER_INSTANCE class detail::loader_pass<image_folder<float>>;

}  // namespace sinter
#endif

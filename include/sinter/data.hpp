// sinter/data.hpp: datasets and loaders.
#pragma once

#include "sinter/data/dataset.hpp"
#include "sinter/data/loader.hpp"
#include "sinter/data/tensor_dataset.hpp"

// sinter/core.hpp: devices, element types, shapes, errors, tensors and views.
#pragma once

#include "sinter/config.hpp"
#include "sinter/core/arena.hpp"
#include "sinter/core/async.hpp"
#include "sinter/core/capture.hpp"
#include "sinter/core/concepts.hpp"
#include "sinter/core/create.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/error.hpp"
#include "sinter/core/gpu_only.hpp"
#include "sinter/core/half.hpp"
#include "sinter/core/print.hpp"
#include "sinter/core/shape.hpp"
#include "sinter/core/storage.hpp"
#include "sinter/core/tensor.hpp"
#include "sinter/core/types.hpp"
#include "sinter/core/view.hpp"

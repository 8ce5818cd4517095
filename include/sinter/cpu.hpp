// sinter/cpu.hpp: evaluation on the host devices.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/cpu/loop.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/cpu/pool.hpp"

// sinter/cpu.hpp: evaluation on the host devices.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/count.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/detail/pool_topology.hpp"
#include "sinter/cpu/eigen.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/cpu/index.hpp"
#include "sinter/cpu/loop.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/cpu/pool.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/cpu/scan.hpp"
#include "sinter/cpu/sort.hpp"

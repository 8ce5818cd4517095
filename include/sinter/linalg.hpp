// sinter/linalg.hpp: linear algebra of matrices on host devices: inverses, linear equations, determinants and
// decompositions.
#pragma once

#include "sinter/config.hpp"

// What a program for host devices needs beside it, in the order of sinter/sinter.hpp.
#include "sinter/core/tensor.hpp"
#include "sinter/expr/declare.hpp"
#include "sinter/expr/point.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/ops.hpp"

#include "sinter/core.hpp"
#include "sinter/cpu.hpp"
#include "sinter/expr.hpp"
#include "sinter/grad.hpp"
#include "sinter/math.hpp"

#include "sinter/linalg/eigen_values.hpp"
#include "sinter/linalg/factors.hpp"
#include "sinter/linalg/least_squares.hpp"
#include "sinter/linalg/matrices.hpp"
#include "sinter/linalg/matrix_norm.hpp"
#include "sinter/linalg/names.hpp"
#include "sinter/linalg/plain.hpp"
#include "sinter/linalg/singular_values.hpp"
#include "sinter/linalg/solve.hpp"

namespace sinter::detail {
struct linalg_header {};  // see ops/other_headers.hpp
}  // namespace sinter::detail

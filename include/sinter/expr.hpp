// sinter/expr.hpp: expression nodes, lowering, evaluation.
#pragma once

#include "sinter/expr/backend.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/expr/node.hpp"

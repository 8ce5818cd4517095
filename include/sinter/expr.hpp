// sinter/expr.hpp: expressions, lowering, evaluation.
#pragma once

#include "sinter/expr/backend.hpp"
#include "sinter/expr/declare.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/expr/explain.hpp"
#include "sinter/expr/expression.hpp"
#include "sinter/expr/fuse.hpp"
#include "sinter/expr/independent.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/expr/let.hpp"
#include "sinter/expr/operands.hpp"
#include "sinter/expr/point.hpp"
#include "sinter/expr/print.hpp"
#include "sinter/expr/reducer.hpp"
#include "sinter/expr/sort_key.hpp"
#include "sinter/expr/stock.hpp"

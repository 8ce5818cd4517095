// src/stock_dense.cpp: a part of sinter::compiled: statements of dense layers, losses and what backward passes write; see sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 3
#include <sinter/sinter.hpp>

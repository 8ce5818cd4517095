// src/stock_layers.cpp: a part of sinter::compiled: statements of group and layer norm, dropout and resampling; see
// sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 6
#include <sinter/sinter.hpp>

// src/stock_convolutions.cpp: a part of sinter::compiled: statements of convolutions and pooling; see sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 1
#include <sinter/sinter.hpp>

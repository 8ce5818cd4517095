// src/stock_norms.cpp: a part of sinter::compiled: statements of norms; see sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 2
#include <sinter/sinter.hpp>

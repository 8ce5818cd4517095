// src/stock_lines.cpp: a part of sinter::compiled: statements of layers of one dimension; see sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 5
#include <sinter/sinter.hpp>

// src/stock_data.cpp: a part of sinter::compiled: statements that handle data; see sinter/cpu/stock.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 4
#include <sinter/sinter.hpp>

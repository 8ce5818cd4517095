// src/stock_sequences.cpp: a part of sinter::compiled: recurrent layers; see sinter/sequences/instances.hpp.
#define SINTER_COMPILED 1
#define SINTER_STOCK_PART 7
#include <sinter/sequences.hpp>

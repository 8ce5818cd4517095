// src/sinter.cpp: what is the same in every program, compiled once: the target sinter::compiled. A program without
// CMake compiles this file, or one of its own with these lines, and all others with -DSINTER_COMPILED=1; the stock
// statements are then in it, too.
#define SINTER_IMPLEMENTATION
#include <sinter/data.hpp>
#include <sinter/io.hpp>
#include <sinter/linalg/matrices.hpp>
#include <sinter/metrics.hpp>
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sequences.hpp>
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

// src/sinter.cpp: what is the same in every program, compiled once: the target sinter::compiled, with the stock
// statements where CMake does not compile them in parts. A program without
// CMake compiles this file, or one of its own with these lines, and all others with -DSINTER_COMPILED=1.
#define SINTER_IMPLEMENTATION
#include <sinter/data.hpp>
#include <sinter/io.hpp>
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

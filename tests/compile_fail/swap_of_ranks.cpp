// tests/compile_fail/swap_of_ranks.cpp: a variable and one of another rank do not change places.
// FIRST-LINE: conversion_between_ranks<1, 2>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1>& a, variable<float, 2>& b) { std::swap(a, b); }
#else
void f(variable<float, 2>& a, variable<float, 2>& b) { std::swap(a, b); }
#endif

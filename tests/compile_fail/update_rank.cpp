// tests/compile_fail/update_rank.cpp: an update in place by an expression of higher rank.
// FIRST-LINE: conversion_between_ranks<2, 1>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> a, tensor<float, 2> b) { a += b; }
#else
void f(tensor<float, 1> a, tensor<float, 2> b) { a += b[0]; }
#endif

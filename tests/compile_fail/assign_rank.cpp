// tests/compile_fail/assign_rank.cpp: an expression of another rank than the tensor it is assigned to.
// FIRST-LINE: conversion_between_ranks<2, 1>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> a, tensor<float, 2> b) { a = b * 2; }
#else
void f(tensor<float, 1> a, tensor<float, 2> b) { a = b.flatten() * 2; }
#endif

// tests/compile_fail/return_rank.cpp: a tensor of another rank than promised.
// FIRST-LINE: conversion_between_ranks<2, 1>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1> f(tensor<float, 2> a) { return a; }
#else
tensor<float, 1> f(tensor<float, 2> a) { return a.flatten(); }
#endif

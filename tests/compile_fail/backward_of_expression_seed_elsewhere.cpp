// tests/compile_fail/backward_of_expression_seed_elsewhere.cpp: the seed of an expression on another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?numa<0>, (sinter::)?cpu\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> x, tensor<float, 1, numa<0>> seed) { (x * x).backward(seed); }
#else
void f(variable<float, 1> x, tensor<float, 1> seed) { (x * x).backward(seed); }
#endif

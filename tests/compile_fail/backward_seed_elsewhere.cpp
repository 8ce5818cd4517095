// tests/compile_fail/backward_seed_elsewhere.cpp: backward() with a seed on another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> y, tensor<float, 1, cuda<0>> seed) { y.backward(seed); }
#else
void f(variable<float, 1> y, tensor<float, 1> seed) { y.backward(seed); }
#endif

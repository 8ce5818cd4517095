// tests/compile_fail/listener_seed_elsewhere.cpp: a seed on another device, of a pass with a listener.
// FIRST-LINE: conversion_between_devices<(sinter::)?numa<0>, (sinter::)?cpu\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> x, tensor<float, 1, numa<0>> seed, gradient_listener& l) { x.backward(seed, l); }
#else
void f(variable<float, 1> x, tensor<float, 1> seed, gradient_listener& l) { x.backward(seed, l); }
#endif

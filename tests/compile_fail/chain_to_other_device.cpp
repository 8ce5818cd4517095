// tests/compile_fail/chain_to_other_device.cpp: y = x = e with y on another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1, numa<0>>& y, tensor<float, 1>& x) { y = x = x * 2.f; }
#else
void f(tensor<float, 1>& y, tensor<float, 1>& x) { y = x = x * 2.f; }
#endif

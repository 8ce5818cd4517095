// tests/compile_fail/assign_through_slice.cpp: assignment through a slice from another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?numa<1>, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<1>> b) { a.slice(0, 0, 2) = b; }
#else
void f(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<0>> b) { a.slice(0, 0, 2) = b; }
#endif

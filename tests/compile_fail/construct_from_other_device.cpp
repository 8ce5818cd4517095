// tests/compile_fail/construct_from_other_device.cpp: a tensor built from an expression on another NUMA node.
// FIRST-LINE: conversion_between_devices<(sinter::)?numa<1>, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1, numa<0>> twice(tensor<float, 1, numa<1>> a) { return tensor<float, 1, numa<0>>(a + a); }
#else
tensor<float, 1, numa<0>> twice(tensor<float, 1, numa<0>> a) { return tensor<float, 1, numa<0>>(a + a); }
#endif

// tests/compile_fail/return_to_other_device.cpp: a function that returns a tensor of another device than it promises.
// FIRST-LINE: conversion_between_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 2, cuda<0>> promised(tensor<float, 2> a) { return a; }
#else
tensor<float, 2, cpu> promised(tensor<float, 2> a) { return a; }
#endif

// tests/compile_fail/assign_from_other_device.cpp: an expression assigned to a tensor of another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> a, tensor<float, 1, cuda<0>> b) { a = b * 2; }
#else
void f(tensor<float, 1> a, tensor<float, 1> b) { a = b * 2; }
#endif

// tests/compile_fail/argument_of_other_device.cpp: an argument on another device than the parameter.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

float first(const tensor<float, 1>& x);

#ifdef SINTER_MUST_FAIL
float caller(tensor<float, 1, cuda<0>> a) { return first(a); }
#else
float caller(tensor<float, 1> a) { return first(a); }
#endif

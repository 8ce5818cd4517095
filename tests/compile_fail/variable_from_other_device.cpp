// tests/compile_fail/variable_from_other_device.cpp: a variable declared with a tensor of another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
variable<float, 2> parameter(tensor<float, 2, cuda<0>> a) { return a; }
#else
variable<float, 2> parameter(tensor<float, 2> a) { return a; }
#endif

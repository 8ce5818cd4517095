// tests/compile_fail/initialise_from_other_device.cpp: a tensor declared with the value of one on a GPU.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a) { tensor<float, 2> b = a; }
#else
void f(tensor<float, 2, cuda<0>> a) { tensor<float, 2, cuda<0>> b = a; }
#endif

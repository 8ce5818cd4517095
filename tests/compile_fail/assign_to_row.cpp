// tests/compile_fail/assign_to_row.cpp: assignment through an index from another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 1, cuda<0>> b) { a[0] = b + 1; }
#else
void f(tensor<float, 2> a, tensor<float, 1> b) { a[0] = b + 1; }
#endif

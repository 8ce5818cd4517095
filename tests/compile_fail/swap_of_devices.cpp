// tests/compile_fail/swap_of_devices.cpp: tensors of different devices do not change places.
// FIRST-LINE: conversion_between_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2>& a, tensor<float, 2, cuda<0>>& b) { std::swap(a, b); }
#else
void f(tensor<float, 2>& a, tensor<float, 2>& b) { std::swap(a, b); }
#endif

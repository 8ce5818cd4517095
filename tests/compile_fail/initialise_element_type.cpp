// tests/compile_fail/initialise_element_type.cpp: a tensor of floats from an expression of integers.
// FIRST-LINE: conversion_between_element_types<int, float>
// FIRST-LINE: convert_explicitly_with_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1> f(tensor<int, 1> a) { return a * 2; }
#else
tensor<float, 1> f(tensor<int, 1> a) { return cast<float>(a * 2); }
#endif

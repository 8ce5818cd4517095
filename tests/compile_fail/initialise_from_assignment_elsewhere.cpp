// tests/compile_fail/initialise_from_assignment_elsewhere.cpp: a tensor of another device made from an assignment.
// FIRST-LINE: conversion_between_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1, numa<0>> f(tensor<float, 1>& x) { return x += 1.f; }
#else
tensor<float, 1> f(tensor<float, 1>& x) { return x += 1.f; }
#endif

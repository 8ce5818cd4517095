// tests/compile_fail/variable_assigned_from_other_device.cpp: a tracked expression assigned to a variable of another device.
// FIRST-LINE: conversion_between_devices<(sinter::)?numa<1>, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1, numa<0>> a, variable<float, 1, numa<1>> b) { a = b * 2; }
#else
void f(variable<float, 1, numa<0>> a, variable<float, 1, numa<0>> b) { a = b * 2; }
#endif

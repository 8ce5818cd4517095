// tests/compile_fail/data_parallel_device_twice.cpp: data_parallel() over a device and the same one again.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?numa<0>, (sinter::)?numa<0> ?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::linear<>& model) { nn::data_parallel<numa<0>, numa<0>>(model); }
#else
void f(const nn::linear<>& model) { nn::data_parallel<numa<0>, numa<1>>(model); }
#endif

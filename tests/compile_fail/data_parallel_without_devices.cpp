// tests/compile_fail/data_parallel_without_devices.cpp: data_parallel() without a list of devices.
// FIRST-LINE: replicas_without_devices<
// FIRST-LINE: name_the_devices_in_angle_brackets
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::linear<>& model) { nn::data_parallel(model); }
#else
void f(const nn::linear<>& model) { nn::data_parallel<cuda<0>, cuda<1>>(model); }
#endif

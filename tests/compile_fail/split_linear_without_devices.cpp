// tests/compile_fail/split_linear_without_devices.cpp: columns over no devices.
// FIRST-LINE: split_linear_without_devices<
// FIRST-LINE: name_the_devices_in_angle_brackets
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::linear<>& layer) { return nn::split_linear(layer); }
#else
auto f(const nn::linear<>& layer) { return nn::split_linear<numa<0>>(layer); }
#endif

// tests/compile_fail/split_linear_device_twice.cpp: columns over a device that is listed twice.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?numa<0>, (sinter::)?numa<0>\s?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::linear<>& layer) { return nn::split_linear<numa<0>, numa<0>>(layer); }
#else
auto f(const nn::linear<>& layer) { return nn::split_linear<numa<0>, numa<1>>(layer); }
#endif

// tests/compile_fail/usage_without_device.cpp: a meter of no device.
// FIRST-LINE: usage_of_no_device
// FIRST-LINE: name_the_devices_in_angle_brackets
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
usage_meter<> meter;
#else
usage_meter<cpu> meter;
#endif

// tests/compile_fail/usage_device_twice.cpp: a meter that counts a device twice.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?numa<0>,\s?(sinter::)?cpu,\s?(sinter::)?numa<0>\s?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
usage_meter<numa<0>, cpu, numa<0>> meter;
#else
usage_meter<numa<0>, cpu, numa<1>> meter;
#endif

// tests/compile_fail/fuse_devices.cpp: fuse() of assignments on two devices.
// FIRST-LINE: assignments_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: fuse_the_assignments_of_each_device_apart
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void step(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<1>> b) { fuse(a = a + 1, b = b + 1); }
#else
void step(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<0>> b) { fuse(a = a + 1, b = b + 1); }
#endif

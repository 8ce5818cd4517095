// tests/cuda/rejected/device_pointer_of_variable.cu: the pointer to GPU memory of a variable, past the tape.
// FIRST-LINE: no_device_pointer_of_a_variable
// FIRST-LINE: take_the_pointer_of_dot_value
#include <sinter/cuda/native.hpp>
#include <sinter/grad/variable.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float* f(variable<float, 1, cuda<0>> a) { return device_pointer(a); }
#else
float* f(variable<float, 1, cuda<0>> a) { return device_pointer(a.value()); }
#endif

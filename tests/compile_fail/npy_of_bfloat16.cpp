// tests/compile_fail/npy_of_bfloat16.cpp: read_npy<bfloat16>(), a type that NumPy's files do not have.
// FIRST-LINE-GCC: npy_has_no_bfloat16.*use_float_and_cast
// EXPECT: npy_has_no_bfloat16
// EXPECT: use_float_and_cast
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return read_npy<bfloat16, 1>("x.npy"); }
#else
auto f() { return read_npy_as<bfloat16, 1>("x.npy"); }
#endif

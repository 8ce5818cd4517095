// tests/compile_fail/synchronize_host_device.cpp: waiting for a host device, in a file for the host compiler.
// FIRST-LINE: sinter: only GPUs work on their own; on a host device a statement has run when it returns
// EXPECT: cpu
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f() { synchronize<cpu>(); }
#else
template <int I>
void f() {
  synchronize<cuda<I>>();
}
#endif

// tests/cuda/rejected/native_cudnn_without_cudnn.cu: a handle of cuDNN in a file compiled without it.
// FIRST-LINE: native_cudnn_needs_cudnn
// FIRST-LINE: compile_with_SINTER_WITH_CUDNN_1_and_link_cudnn
#ifdef SINTER_MUST_FAIL
#undef SINTER_WITH_CUDNN
#endif
#include <sinter/sinter.hpp>

void f() { static_cast<void>(sinter::native_cudnn<sinter::cuda<0>>()); }

// tests/cuda/rejected/cudnn_without_backend.cu: cuDNN asked for where the CUDA backend is left out.
// FIRST-LINE: SINTER_WITH_CUDNN=1 is for files with the CUDA backend
#ifdef SINTER_MUST_FAIL
#define SINTER_WITH_CUDA 0
#else
#define SINTER_WITH_CUDA 1
#endif
#undef SINTER_WITH_CUDNN
#define SINTER_WITH_CUDNN 1
#undef SINTER_WITH_NCCL
#include <sinter/config.hpp>

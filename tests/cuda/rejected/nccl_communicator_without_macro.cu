// tests/cuda/rejected/nccl_communicator_without_macro.cu: ranks over NCCL without the macro that says NCCL is there.
// FIRST-LINE: needs NCCL: compile with -DSINTER_WITH_NCCL=1 and link with -lnccl
#ifdef SINTER_MUST_FAIL
#undef SINTER_WITH_NCCL
#endif
#include <sinter/ranks/nccl/communicator.hpp>

// tests/cuda/runtime/fake_nccl.hpp: faults of NCCL on the machine of fake.hpp.
#pragma once

#include <nccl.h>

#include <cstddef>

namespace fake_nccl {

/// The next look at the communicator of a GPU, once it has begun, says that it has failed.
void fail_soon(int gpu, ncclResult_t error);
/// Work of the communicators of a GPU does not run from now on, or does again.
void hold_work(int gpu, bool held);
/// Communicators that were not destroyed and not aborted.
std::size_t living();
/// Ended in good order, and by force, since the last call.
struct ended {
  int destroyed = 0, aborted = 0;
};
ended take_ended();

}  // namespace fake_nccl

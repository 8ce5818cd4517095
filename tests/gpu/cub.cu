// tests/gpu/cub.cu: has the sorts of the programs that it is linked into done by CUB.
// [docs:cub]
#include <sinter/cuda/cub.hpp>
// [docs:end]

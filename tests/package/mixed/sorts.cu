// tests/package/mixed/sorts.cu: has the sorts of the program done by CUB; the other files do not change.
// [docs:cub]
#define SINTER_WITH_CUB 1
#include <sinter/sinter.hpp>
// [docs:end]

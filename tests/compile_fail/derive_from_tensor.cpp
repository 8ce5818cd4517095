// tests/compile_fail/derive_from_tensor.cpp: a tensor is a member of a class, not its base.
// FIRST-LINE: (cannot derive from .final. base|base .*is marked .final.)
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
struct image : tensor<float, 3> {};
#else
struct image {
  tensor<float, 3> pixels;
};
#endif

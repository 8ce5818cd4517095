// sinter/linalg/names.hpp: the functions of linear algebra as linalg::det and its like, as PyTorch and NumPy have them.
#pragma once

#include "sinter/linalg/matrices.hpp"

namespace sinter::linalg {

using namespace ::sinter;

/// inverse(a).
///
///     tensor b = linalg::inv(a);
template <class A>
auto inv(A&& a) {
  return inverse(std::forward<A>(a));
}

}  // namespace sinter::linalg

// tests/docs/two_classes.hpp: a small set of samples for the tests of the pages.
#pragma once

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

inline auto two_classes() {
  sinter::generator gen(1);
  const sinter::tensor x = sinter::randn<float>(gen, {24, 4});
  return sinter::tensor_dataset(x, sinter::randint(gen, 0, 2, {24}));
}

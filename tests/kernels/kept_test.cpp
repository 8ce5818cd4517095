// tests/kernels/kept_test.cpp: which operands of an op with kernels backward keeps.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

TEST_CASE("an operand is kept only for a gradient that somebody asks for", "[kernels]") {
  const tensor<float, 4> image = ones<float>({1, 1, 4, 4}), taps = ones<float>({1, 1, 3, 3});
  const variable x = image.clone(), w = taps.clone();
  const auto seed = ones<float>({1, 1, 2, 2});

  const variable of_image = conv2d(x, taps);  // its gradient reads the weights
  x.value() += 1.f;
  of_image.backward(seed);
  CHECK(x.grad()(0, 0, 1, 1) == 4);

  const variable of_weights = conv2d(image, w);  // its gradient reads the image
  w.value() += 1.f;
  of_weights.backward(seed);
  CHECK(w.grad()(0, 0, 0, 0) == 4);

  const variable fixed = conv2d(x, taps);
  taps.slice(0, 0, 1) = taps * 2.f;
  CHECK_THROWS_WITH(fixed.backward(seed), Catch::Contains("modified in place"));
}

// tests/sequences/distance.hpp: how far two results are apart.
#pragma once

#include <sinter/sinter.hpp>
#include "../catch.hpp"

template <class A, class B>
double distance(const A& a, const B& b) {
  const auto x = sinter::eval(sinter::cast<double>(a)), y = sinter::eval(sinter::cast<double>(b));
  REQUIRE(x.shape() == y.shape());
  return sinter::eval(max(abs(x - y))).item();
}

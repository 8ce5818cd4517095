// tests/flags/both_namespaces.cpp: names that the standard library has too, where both namespaces are visible; returns
// how many go wrong.
#include <algorithm>
#include <any>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <numeric>
#include <random>
#include <stack>
#include <string>
#include <valarray>
#include <vector>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace std;
using namespace sinter;

namespace {

int wrong = 0;

template <class E>
void is(const E& values, double expected) {
  const tensor result = values;
  if (!(std::fabs(double(result(0)) - expected) < 1e-6)) ++wrong;
}

}  // namespace

int main() {
  const tensor<float, 1> x{0.5f, 2.f}, y{0.25f, 4.f}, z{1.f, 1.f};
  is(abs(x), 0.5), is(acos(x), std::acos(0.5)), is(asin(x), std::asin(0.5)), is(atan(x), std::atan(0.5)),
      is(atan2(x, y), std::atan2(0.5, 0.25));
  is(cbrt(x), std::cbrt(0.5)), is(ceil(x), 1), is(clamp(x, 0.75f, 1.f), 0.75), is(clamp(x, y, z), 0.5),
      is(cos(x), std::cos(0.5)), is(cosh(x), std::cosh(0.5));
  is(erf(x), std::erf(0.5)), is(erfc(x), std::erfc(0.5)), is(exp(x), std::exp(0.5)), is(exp2(x), std::exp2(0.5)),
      is(expm1(x), std::expm1(0.5));
  is(floor(x), 0), is(fma(x, y, z), 1.125), is(fmod(x, y), 0), is(hypot(x, y), std::hypot(0.5, 0.25)),
      is(lerp(x, y, 0.5f), 0.375);
  is(isfinite(x), 1), is(isinf(x), 0), is(isnan(x), 0), is(log(x), std::log(0.5)), is(log10(x), std::log10(0.5)),
      is(log1p(x), std::log1p(0.5));
  is(log2(x), -1), is(max(x, 0, keepdim), 2), is(min(x, 0, keepdim), 0.5), is(norm(x, 0, keepdim), std::hypot(0.5, 2)),
      is(pow(x, y), std::pow(0.5, 0.25));
  is(pow(x, 2), 0.25), is(remainder(x, y), 0), is(round(x), 0), is(sin(x), std::sin(0.5)), is(sinh(x), std::sinh(0.5)),
      is(sort(-x, 0).values, -2);
  is(sqrt(x), std::sqrt(0.5)), is(tan(x), std::tan(0.5)), is(tanh(x), std::tanh(0.5)), is(trunc(x), 0),
      is(unique(x).values, 0.5);
  tensor<float, 1> to = z;
  copy(x, to);
  is(to, 0.5);
  generator gen(1);
  tensor random = rand<float>(gen, {2, 3});
  tensor e = sinter::empty<float>({2, 3});
  is(sinter::stack(0, x, y).select(0, 1), 0.25);
  is(sinter::any(x > 1.f, 0, keepdim), 1), is(sinter::logical_and(x > 1.f, y > 1.f), 0),
      is(sinter::logical_or(x > 0.f, y > 1.f), 1);
  is(sinter::logical_not(x > 1.f), 1);
  const sinter::sample<tensor<float, 1>, index_t> s{x, 3};
  is(s.input, 0.5);
  return wrong + (random.extent(1) != 3) + (e.extent(0) != 2);
}

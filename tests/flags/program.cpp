// tests/flags/program.cpp: a small part of each room, computed with other flags; returns how many results are wrong.
#include <cmath>
#include <cstdio>

// As in a program for Windows.
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))

#include <sinter/sinter.hpp>

#include <Eigen/Core>

using namespace sinter;

namespace {

int wrong = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}

bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

}  // namespace

int main() {
  const tensor<float, 1> x{-1.f, -2.f, 0.5f, 3.f, 7.f, 20.f, 1e-3f, 4.f, -0.25f};
  const tensor<float, 1> e = exp(x), s = sin(x), t = tanh(x), l = log(abs(x)), r = round(x * 1.25f);
  for (index_t i = 0; i < x.numel(); ++i) {
    const double v = double{x(i)};
    check(near(double{e(i)}, std::exp(v)), "exp");
    check(near(double{s(i)}, std::sin(v)), "sin");
    check(near(double{t(i)}, std::tanh(v)), "tanh");
    check(std::fabs(double{l(i)} - std::log(std::fabs(v))) < 1e-5, "log");
    check(double{r(i)} == std::nearbyint(v * 1.25), "round");
  }
  check(near(double{sum(x).item()}, 31.251), "sum");
  check(tensor(min(x)).item() == -2 && tensor(max(x)).item() == 20, "extremes");
  const tensor<float, 1> zeros = x * 0.f;
  const tensor<bool, 1> infinite = isinf(x / 0.f), none = isnan(zeros / 0.f);
  check(infinite(0) && none(1), "infinities and NaN");
  check(std::signbit(zeros(0)) && !std::signbit(zeros(2)), "signs of zeros");

  const tensor<float, 2> a{{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}};
  variable w = a;
  variable loss = sum(square(matmul(w, a.transpose())));
  loss.backward();
  check(loss.item() == 14.f * 14 + 32 * 32 * 2 + 77 * 77, "matmul");
  check(w.grad()(0, 0) == 2 * (14 * 1 + 32 * 4), "its gradient");

  check(as_eigen(a)(1, 2) == 6 && tensor(from_eigen(as_eigen(a).transpose()))(2, 1) == 6, "Eigen's matrices");
  const tensor<half, 1> narrow = cast<half>(x);
  const tensor<float, 1> wide = cast<float>(narrow);
  for (index_t i = 0; i < x.numel(); ++i) check(std::fabs(wide(i) - x(i)) <= 1e-3f * std::fabs(x(i)), "half");

  const tensor<int, 1> n{7, -7, 0, 9, 100};
  check(tensor(sum(n / 2)).item() == 3 - 3 + 4 + 50, "integers");
  const tensor<float, 2> rows = softmax(a, 1), by_hand = exp(a) / sum(exp(a), 1, keepdim);
  for (index_t i = 0; i < 6; ++i) check(near(double{rows(i / 3, i % 3)}, double{by_hand(i / 3, i % 3)}), "softmax");
  try {
    (void)x(100);
    check(false, "an index out of range");
  } catch (const error&) {
  }
  return wrong;
}

// tests/ops/other_names_test.cpp: functions of a program's own that bear names which ops/other_names.hpp has messages
// for.
#include "../catch.hpp"
#include "../same_bits.hpp"

#include <cmath>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

using matrix = tensor<float, 2>;

int heaviside(const matrix&) { return 1; }
int logdet(matrix) { return 2; }
template <class T>
int inv(const T&) {
  return 3;
}
template <class T>
int matrix_power(T&&, int) {
  return 4;
}
template <class A, class B>
int ptp(const A&, const B&) {
  return 5;
}

}  // namespace

TEST_CASE("A program's own function is preferred to a message of its name") {
  const matrix constant{{1, 2}, {3, 4}};
  matrix x = constant;
  CHECK(heaviside(x) + heaviside(constant) == 2);
  CHECK(logdet(x) + logdet(constant) == 4);
  CHECK(inv(x) + inv(x + 1) == 6);
  CHECK(matrix_power(x, 2) + matrix_power(constant, 2) == 8);
  CHECK(ptp(x, constant) + ptp(constant, x + 1) == 10);
}

TEST_CASE("Members that write in place show in every view") {
  const matrix x{{1, -2}, {3, -4}};
  const auto column = x.select(1, 1);
  x.relu_().add_(1);
  CHECK(same_bits(column, tensor<float, 1>{1, 1}));
  column.exp_().neg_();
  CHECK(same_bits(x, matrix{{2, -std::exp(1.0F)}, {4, -std::exp(1.0F)}}));
  x.T().cumsum_(0);
  CHECK(max_abs_difference(x, matrix{{2, 2 - std::exp(1.0F)}, {4, 4 - std::exp(1.0F)}}) < 1e-6);
  x.index_add_(0, tensor<std::int64_t, 1>{1}, ones<float>({1, 2}));
  CHECK(x(1, 0) == 5);
  CHECK_THROWS_AS(x.masked_fill_(tensor<bool, 1>{true, false, true}, 1), shape_error);
}

// tests/grad/matmul_axes_test.cpp: matmul and linear of vectors and of more axes, against sums of products.
#include "differences.hpp"

using namespace sinter;

namespace {

/// What matmul stands for, element by element, of matrices with leading axes of the same shape.
template <int R>
tensor<double, R> naive(const tensor<double, R>& a, const tensor<double, R>& b) {
  const auto left = a.unsqueeze(-1);
  const auto right = b.unsqueeze(-3);
  return sum(left * right, -2);
}
template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return eval(max(abs(a - b))).item();
}

}  // namespace

TEST_CASE("matmul takes leading axes, which broadcast", "[matmul]") {
  std::mt19937 gen(3);
  const auto a = differences::random(gen, extents<4>{{2, 3, 4, 5}}, -1, 1);
  const auto b = differences::random(gen, extents<4>{{2, 3, 5, 6}}, -1, 1);
  CHECK(distance(matmul(a, b), naive(a, b)) < 1e-12);
  const auto one = differences::random(gen, extents<4>{{2, 1, 5, 6}}, -1, 1);
  CHECK(distance(matmul(a, one), naive(a, eval(one + zeros<double>({1, 3, 1, 1})))) < 1e-12);
  const tensor c = b.select(0, 0);
  CHECK(distance(matmul(a, c), naive(a, eval(c.unsqueeze(0) + zeros<double>({2, 1, 1, 1})))) < 1e-12);
  const tensor d = c.select(0, 1);
  CHECK(distance(matmul(a, d), naive(a, eval(d.unsqueeze(0).unsqueeze(0) + zeros<double>({2, 3, 1, 1})))) < 1e-12);
  CHECK(distance(matmul(d.transpose(), b.transpose(0, 1).transpose(0, 1).transpose().transpose()),
                 eval(matmul(b.transpose(), d).transpose())) < 1e-12);
  CHECK(distance(matmul(a.select(0, 0), b.select(0, 1).slice(0, 0, 1)),
                 eval(naive(a, b.slice(0, 1, 2).slice(1, 0, 1).broadcast_to({2, 3, 5, 6})).select(0, 0))) < 1e-12);
}

TEST_CASE("matmul takes vectors as rows and columns", "[matmul]") {
  std::mt19937 gen(4);
  const auto m = differences::random(gen, extents<2>{{4, 5}}, -1, 1);
  const auto v = differences::random(gen, extents<1>{{5}}, -1, 1), w = differences::random(gen, extents<1>{{4}}, -1, 1);
  const auto batch = differences::random(gen, extents<3>{{3, 4, 5}}, -1, 1);
  CHECK(matmul(v, v).item() == Approx(eval(dot(v, v)).item()));
  CHECK(distance(matmul(m, v), eval(mv(m, v))) < 1e-12);
  CHECK(distance(matmul(w, m), eval(mv(m.transpose(), w))) < 1e-12);
  CHECK(distance(matmul(batch, v), eval(sum(batch * v, -1))) < 1e-12);
  CHECK(distance(matmul(w, batch), eval(sum(batch * w.unsqueeze(1), 1))) < 1e-12);
  CHECK(matmul(tensor<int, 1>{1, 2, 3}, tensor<int, 1>{4, 5, 6}).item() == 32);
}

TEST_CASE("products of more axes have the gradients of differences", "[matmul][grad]") {
  std::mt19937 gen(5);
  const auto a = differences::random(gen, extents<4>{{2, 2, 3, 4}}, -1, 1);
  const auto b = differences::random(gen, extents<3>{{2, 4, 2}}, -1, 1);
  const auto v = differences::random(gen, extents<1>{{4}}, -1, 1);
  const auto product = [](const auto& x, const auto& y) { return matmul(x, y); };
  differences::check(product, 12, a, b);
  differences::check(product, 12, a, v);
  differences::check(product, 12, v, b);
  differences::check(product, 12, v, differences::random(gen, extents<1>{{4}}, -1, 1));
  differences::check(product, 12, b.slice(0, 0, 1).transpose().contiguous(), b);
}

TEST_CASE("linear takes one vector and more axes", "[linear]") {
  std::mt19937 gen(6);
  const auto x = differences::random(gen, extents<3>{{2, 3, 4}}, -1, 1);
  const auto w = differences::random(gen, extents<2>{{5, 4}}, -1, 1);
  const auto b = differences::random(gen, extents<1>{{5}}, -1, 1);
  const tensor rows = linear(x.reshape({6, 4}), w, b);
  CHECK(distance(linear(x, w, b), rows.reshape({2, 3, 5})) < 1e-15);
  CHECK(distance(linear(x.select(0, 1).select(0, 2), w, b), rows[5]) < 1e-15);
  CHECK(distance(linear(x, w), eval(matmul(x, w.transpose()))) < 1e-12);
  CHECK(distance(linear(x, w, 0.5), eval(linear(x, w) + 0.5)) < 1e-15);
  differences::check([](const auto& p, const auto& q, const auto& r) { return tanh(linear(p * 2, q, r)); }, 12, x, w,
                     b);
  CHECK(linear(zeros<double>({0, 3, 4}), w, b).shape() == extents<3>{{0, 3, 5}});
  generator random(1);
  const nn::linear layer(4, 5, random);
  const variable y = layer(cast<float>(x));
  CHECK(y.shape() == extents<3>{{2, 3, 5}});
}

TEST_CASE("products of more axes name the shapes that do not fit", "[matmul]") {
  const auto a = zeros<float>({2, 3, 4, 5});
  CHECK_THROWS_WITH(matmul(a, zeros<float>({2, 3, 4, 5})),
                    Catch::Contains("matmul: shapes (2, 3, 4, 5) and (2, 3, 4, 5)"));
  CHECK_THROWS_WITH(matmul(a, zeros<float>({4, 5, 6})), Catch::Contains("(2, 3) and (4,)"));
  CHECK_THROWS_AS(matmul(zeros<float>({3}), zeros<float>({4})), shape_error);
  CHECK_THROWS_WITH(linear(a, zeros<float>({2, 4})), Catch::Contains("linear: shapes (2, 3, 4, 5) and (2, 4)"));
  CHECK_THROWS_AS(matmul(zeros<float>({2, 3, 4}), zeros<float>({3, 4, 5})), shape_error);
}

TEST_CASE("the gradient of reshape is the gradient in the other shape", "[grad]") {
  const variable x = arange<double>(12);
  const variable y = x.reshape({3, 4});
  const variable loss = sum(y * arange<double>(4)) + sum(x);
  loss.backward();
  CHECK(x.grad()(5) == 2);
  CHECK(x.grad()(8) == 1);
  const variable z = x.reshape({4, 3});
  z.retain_grad();
  const variable again = sum(square(z.transpose()));
  again.backward();
  CHECK(z.grad()(1, 2) == 10);
  CHECK(x.grad()(5) == 12);
}

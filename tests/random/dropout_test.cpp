// tests/random/dropout_test.cpp: dropout: one mask for value and gradient, whatever the device, shape and threads.
#include "../catch.hpp"

#include <cmath>

#include <sinter/sinter.hpp>

using namespace sinter;

TEST_CASE("dropout zeroes its share and keeps the mean") {
  generator gen(1);
  const tensor x = ones<float>({1000, 101});
  const tensor y = dropout(x, 0.2, gen);
  int zero = 0;
  for (float v : y) {
    REQUIRE((v == 0.f || v == 1 / 0.8f));
    zero += v == 0.f;
  }
  CHECK(zero == Approx(20200).margin(600));
}

TEST_CASE("a dropout node has one mask however often and wherever it is evaluated") {
  generator gen(2);
  const tensor x = ones<float>({37, 53});
  const auto node = dropout(x * 1.f, 0.5, gen);
  const tensor first = node;
  const tensor sum = node + node;
  const tensor more = zeros<float>({3, 37, 53}) + node;  // broadcast: the mask is the node's, three times
  for (int i = 0; i < 37; ++i)
    for (int j = 0; j < 53; ++j) {
      REQUIRE(sum(i, j) == 2 * first(i, j));
      for (int k = 0; k < 3; ++k) REQUIRE(more(k, i, j) == first(i, j));
    }
  const tensor other = dropout(x, 0.5, gen);
  int differ = 0;
  for (int i = 0; i < 37; ++i)
    for (int j = 0; j < 53; ++j) differ += other(i, j) != first(i, j);
  CHECK(differ > 700);
}

TEST_CASE("the gradient goes through the mask of the forward pass, fused with what comes before") {
  for (int threads : {1, 3}) {
    const int before = num_threads();
    set_num_threads(threads);
    generator gen(3);
    variable<float, 2> x = randn<float>(gen, {301, 257});
    const tensor seed = randn<float>(gen, {301, 257});
    variable<float, 2> y = dropout(x * x, 0.3, gen);
    y.backward(seed);
    for (int i = 0; i < 301; ++i)
      for (int j = 0; j < 257; ++j) {
        const float keep = y(i, j) == 0.f ? 0.f : 1 / (1 - 0.3f);
        REQUIRE(x.grad()(i, j) == Approx(seed(i, j) * keep * 2 * x(i, j)).margin(1e-6));
      }
    set_num_threads(before);
  }
}

TEST_CASE("devices drop the same elements, strided operands too") {
  generator a(4), b(4), c(4);
  generator data(5);
  const tensor x = rand<float>(data, {40, 30});
  const tensor y = dropout(x, 0.5, a);
  const tensor z = dropout(x.to<numa<0>>(), 0.5, b);
  const tensor t = dropout(x.transpose().contiguous().transpose(), 0.5, c);
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 30; ++j) {
      CHECK(y(i, j) == z(i, j));
      CHECK(y(i, j) == t(i, j));
    }
}

TEST_CASE("dropout at the ends of its range") {
  generator gen(6);
  const tensor x = ones<double>({100});
  for (double v : eval(dropout(x, 0, gen))) CHECK(v == 1);
  for (double v : eval(dropout(x, 1, gen))) CHECK(v == 0);
  CHECK_THROWS_AS(dropout(x, 1.01, gen), value_error);
  CHECK_THROWS_AS(dropout(x, -0.01, gen), value_error);
  CHECK_THROWS_AS(dropout(x, std::nan(""), gen), value_error);
  CHECK(eval(dropout(zeros<float>({0, 4}), 0.5, gen)).numel() == 0);
}

TEST_CASE("dropout after a product drops what the product gives") {
  generator gen(7);
  variable<float, 2> x = randn<float>(gen, {8, 5});
  variable<float, 2> w = randn<float>(gen, {6, 5});
  variable<float, 1> b = randn<float>(gen, {6});
  variable<float, 2> h = relu(linear(x, w, b));
  variable<float, 2> y = dropout(relu(linear(x, w, b)), 0.5, gen);
  int dropped = 0;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 6; ++j) {
      CHECK((y(i, j) == 0.f || y(i, j) == Approx(2 * h(i, j))));
      dropped += y(i, j) == 0.f;
    }
  CHECK(dropped > 10);
  y.backward(ones<float>({8, 6}));
  CHECK(w.has_grad());
  CHECK(std::isfinite(b.grad()(0)));
}

TEST_CASE("channel dropout zeroes whole channels, by the number of the channel, whatever the device and the order") {
  const tensor x = ones<float>({20, 30, 2, 3});
  generator a(8), b(8), c(8), d(8);
  const tensor y = dropout2d(x, 0.3, a);
  const tensor kept = dropout(ones<float>({20, 30}), 0.3, b);
  int zero = 0;
  for (index_t n = 0; n < 20; ++n)
    for (index_t k = 0; k < 30; ++k) {
      zero += kept(n, k) == 0.f;
      for (index_t i = 0; i < 2; ++i)
        for (index_t j = 0; j < 3; ++j) REQUIRE(y(n, k, i, j) == kept(n, k));
    }
  CHECK(zero == Approx(180).margin(50));
  const tensor far = dropout2d(x.to<numa<0>>(), 0.3, c);
  CHECK(max(abs(y - far.to<cpu>())).result().item() == 0.f);
  const tensor last = dropout2d(x.to_memory_format(channels_last), 0.3, d);
  CHECK(last.is_contiguous(channels_last));
  CHECK(max(abs(y - last)).result().item() == 0.f);
}

TEST_CASE("an expression with channel dropout has one mask, for its gradient too") {
  generator gen(9);
  const variable<float, 3> x = randn<float>(gen, {5, 40, 4});
  const auto node = dropout1d(x * x, 0.5, gen);
  const tensor first = eval(node).value();
  const variable y = node;
  CHECK(max(abs(first - y.value())).result().item() == 0.f);
  y.backward(ones<float>({5, 40, 4}));
  for (index_t n = 0; n < 5; ++n)
    for (index_t k = 0; k < 40; ++k)
      for (index_t i = 0; i < 4; ++i) REQUIRE(x.grad()(n, k, i) == (y(n, k, i) == 0.f ? 0.f : 4 * x(n, k, i)));
  CHECK(eval(dropout3d(ones<double>({2, 3, 1, 2, 2}), 0, gen))(1, 2, 0, 1, 1) == 1);
  CHECK(max(dropout3d(ones<double>({2, 3, 1, 2, 2}), 1, gen)).result().item() == 0);
  CHECK_THROWS_AS(dropout2d(ones<float>({1, 1, 1, 1}), 1.5, gen), value_error);
  CHECK_THROWS_AS(dropout2d(tensor<float, 4>(), 0.5, gen), shape_error);
}

// tests/grad/row_test.cpp: gradients of softmax, layer_norm, cross_entropy and their relatives, with fused prologues.
#include "differences.hpp"

using namespace sinter;
using differences::check;
using differences::random;

TEST_CASE("softmax and log_softmax have gradients along every axis", "[grad]") {
  std::mt19937 gen(1);
  const auto x = random(gen, {3, 4, 5});
  for (const int axis : {0, 1, 2, -1, -3}) {
    check([=](const auto& v) { return softmax(v, axis); }, 12, x);
    check([=](const auto& v) { return log_softmax(v * 2, axis) * v; }, 12, x);
    check([=](const auto& v) { return softmax(exp(v), axis); }, 12, x);
  }
  check([](const auto& v) { return softmax(v, 0); }, 12, random(gen, {7}));
  check([](const auto& v) { return softmax(v.transpose() + 1, 1) + v.transpose(); }, 12, random(gen, {4, 6}));
}

TEST_CASE("softmax passes gradients to broadcast operands of its prologue", "[grad]") {
  std::mt19937 gen(2);
  check([](const auto& x, const auto& r, const auto& c) { return softmax(x * r + c, 1); }, 10, random(gen, {5, 33}),
        random(gen, {33}), random(gen, {5, 1}));
  check([](const auto& x, const auto& r) { return log_softmax(x + r, 0); }, 10, random(gen, {5, 17}),
        random(gen, {17}));
  check([](const auto& x) { return softmax(x, 1); }, 4, random(gen, {300, 257}));
}

TEST_CASE("layer_norm and rms_norm have gradients in rows, weights and biases", "[grad]") {
  std::mt19937 gen(5);
  const auto x = random(gen, {4, 37});
  const auto w = random(gen, {37}), b = random(gen, {37});
  check([](const auto& v) { return layer_norm(v); }, 12, x);
  check([](const auto& v) { return rms_norm(v, 0.1) * v; }, 12, x);
  check([](const auto& v, const auto& g, const auto& c) { return layer_norm(exp(v) * g, g, c); }, 12, x, w, b);
  check([](const auto& v, const auto& g) { return rms_norm(v + g, g); }, 12, x, w);
  check([](const auto& v) { return layer_norm(v.transpose()) + rms_norm(v.transpose() * 2); }, 12, x);
  check([](const auto& v) { return layer_norm(v); }, 3, random(gen, {2, 3, 5}));
  const variable v = x;
  const variable once = layer_norm(v, w, b);
  once.backward(ones_like(x));
  const tensor first = v.grad().clone();
  const variable again = layer_norm(v, w, b);
  again.backward(ones_like(x));
  for (index_t i = 0; i < x.numel(); ++i) CHECK(v.grad().data()[i] == Approx(2 * first.data()[i]).margin(1e-14));
}

TEST_CASE("cross_entropy has gradients through its prologue in every reduction", "[grad]") {
  std::mt19937 gen(3);
  tensor<int, 1> labels{2, 0, 4, 4};
  const auto x = random(gen, {4, 5});
  const auto r = random(gen, {5});
  check([&](const auto& v) { return cross_entropy(v, labels) * 1; }, 20, x);
  check([&](const auto& v, const auto& b) { return cross_entropy(v * 3 + b, labels, reduction::sum) * 2; }, 20, x, r);
  check([&](const auto& v,
            const auto& b) { return cross_entropy(tanh(v) + b, cast<std::uint8_t>(labels), reduction::none); },
        20, x, r);
  check([&](const auto& v) { return cross_entropy(exp(v), labels) + mean(v); }, 20, x);
  check([&](const auto& v) { return cross_entropy(v, labels) + cross_entropy(v * 2, labels); }, 20, x);
  check([&](const auto& v) { return cross_entropy(v.transpose(), labels); }, 20, random(gen, {5, 4}));
}

TEST_CASE("cross_entropy of a linear layer equals the composition of its parts", "[grad]") {
  std::mt19937 gen(4);
  const auto x = random(gen, {6, 8}), w = random(gen, {4, 8});
  const auto b = random(gen, {4});
  const tensor<std::int64_t, 1> labels{0, 1, 2, 3, 0, 1};
  check([&](const auto& vx, const auto& vw, const auto& vb) { return cross_entropy(linear(vx, vw, vb), labels) * 1; },
        12, x, w, b);
  const variable w1 = w.clone(), w2 = w.clone();
  const variable fused = cross_entropy(linear(x, w1, b), labels);
  fused.backward();
  const variable lp = log_softmax(linear(x, w2, b), 1);
  const variable picked = gather(lp, 1, labels.unsqueeze(1));
  const variable plain = -mean(picked);
  plain.backward();
  CHECK(fused.item() == Approx(plain.item()));
  for (index_t i = 0; i < 32; ++i) CHECK(w1.grad().data()[i] == Approx(w2.grad().data()[i]).margin(1e-12));
}

TEST_CASE("cross_entropy keeps its digits at large logits", "[grad]") {
  const variable x = tensor<float, 2>{{10000, 10000}, {-10000, 10000}, {10000, -10000}};
  const tensor<std::int64_t, 1> labels{0, 0, 0};
  const variable loss = cross_entropy(x, labels, reduction::none);
  CHECK(loss(0) == Approx(0.6931472f).epsilon(1e-6));
  CHECK(loss(1) == 20000);
  CHECK(loss(2) == 0);
  loss.backward(ones<float>({3}));
  CHECK(x.grad()(0, 0) == Approx(-0.5f).epsilon(1e-6));
  CHECK(x.grad()(1, 1) == 1);
  CHECK(x.grad()(2, 0) == 0);
}

TEST_CASE("cross_entropy looks at its labels again where they are used", "[grad]") {
  std::mt19937 gen(7);
  const variable x(random(gen, {2, 3}));
  tensor<std::int64_t, 1> labels{0, 2};
  const auto losses = cross_entropy(x, labels, reduction::none);
  labels.data()[1] = 3;  // which counts as no write
  CHECK_THROWS_WITH(eval(losses), Catch::Contains("cross_entropy: label 3 at position 1 is out of range [0, 3)"));
  labels.data()[1] = 2;
  const variable unseen = cross_entropy(x, labels), seen = cross_entropy(x, labels);
  labels.data()[1] = -1;
  CHECK_THROWS_WITH(unseen.backward(), Catch::Contains("backward of 'cross_entropy': label -1 at position 1"));
  labels.in_place() = 1;
  CHECK_THROWS_AS(seen.backward(), autograd_error);
  CHECK_THROWS_WITH(x.grad(), Catch::Contains("has no gradient"));
}

TEST_CASE("cross_entropy refuses labels that are no class and batches that differ", "[grad]") {
  const auto x = zeros<float>({2, 3});
  CHECK_THROWS_AS(cross_entropy(x, tensor<int, 1>{0, 3}), index_error);
  CHECK_THROWS_AS(cross_entropy(x, tensor<int, 1>{-1, 0}), index_error);
  CHECK_THROWS_WITH(cross_entropy(x, tensor<int, 1>{0, 3}), Catch::Contains("3"));
  CHECK_THROWS_AS(cross_entropy(x, tensor<int, 1>{0, 1, 2}), shape_error);
  CHECK_THROWS_AS(softmax(x, 2), index_error);
  CHECK(tensor(cross_entropy(zeros<float>({0, 3}), zeros<int>({0}), reduction::none)).numel() == 0);
}

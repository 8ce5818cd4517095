// tests/grad/matmul_test.cpp: gradients of products, plain and batched, of transposed views, with every fused epilogue.
#include "differences.hpp"

using namespace sinter;
using differences::check;
using differences::random;

TEST_CASE("products of all transposed forms have gradients", "[grad]") {
  std::mt19937 gen(1);
  const auto a = random(gen, {3, 4}), b = random(gen, {4, 5}), at = random(gen, {4, 3}), bt = random(gen, {5, 4});
  check([](const auto& x, const auto& y) { return matmul(x, y); }, 20, a, b);
  check([](const auto& x, const auto& y) { return matmul(x.transpose(), y); }, 20, at, b);
  check([](const auto& x, const auto& y) { return matmul(x, y.transpose()); }, 20, a, bt);
  check([](const auto& x, const auto& y) { return matmul(x.transpose(), y.transpose()); }, 20, at, bt);
  check([](const auto& x, const auto& y) { return matmul(x.flip(0), y.slice(1, 0, 5, 2)); }, 20, a, b);
  check([](const auto& x) { return matmul(x, x.transpose()); }, 20, a);
  check([](const auto& x) { return matmul(x, x) + x; }, 20, random(gen, {4, 4}));
  check([](const auto& x, const auto& y) { return matmul(tanh(x), y * y); }, 20, a, b);
}

TEST_CASE("batched products have gradients", "[grad]") {
  std::mt19937 gen(2);
  const auto a = random(gen, {2, 3, 4}), b = random(gen, {2, 4, 5});
  check([](const auto& x, const auto& y) { return matmul(x, y); }, 20, a, b);
  check([](const auto& x, const auto& y) { return relu(matmul(x, y.transpose()) + 0.1); }, 20, a,
        random(gen, {2, 5, 4}));
  check([](const auto& x, const auto& y) { return matmul(x.transpose(0, 1), y) * 2; }, 20, random(gen, {3, 2, 4}), b);
  CHECK_THROWS_AS(matmul(a, random(gen, {3, 4, 5})), shape_error);
  check([](const auto& x, const auto& y) { return matmul(x, y); }, 20, a, random(gen, {1, 4, 5}));
  CHECK_THROWS_AS(matmul(a, random(gen, {2, 3, 5})), shape_error);
}

TEST_CASE("linear has gradients with and without bias and for every activation in its epilogue", "[grad]") {
  std::mt19937 gen(3);
  const auto x = random(gen, {6, 7}), w = random(gen, {5, 7}), r = random(gen, {6, 5});
  const auto b = random(gen, {5});
  check([](const auto& vx, const auto& vw) { return linear(vx, vw); }, 15, x, w);
  check([](const auto& vx, const auto& vw, const auto& vb) { return linear(vx, vw, vb); }, 15, x, w, b);
  check([](const auto& vx, const auto& vw, const auto& vb) { return relu(linear(vx, vw, vb)); }, 15, x, w, b);
  check([](const auto& vx, const auto& vw, const auto& vb) { return gelu(linear(vx, vw, vb)); }, 15, x, w, b);
  check([](const auto& vx, const auto& vw, const auto& vb) { return tanh(linear(vx, vw, vb)) * 2; }, 15, x, w, b);
  check([](const auto& vx, const auto& vw, const auto& vb) { return sigmoid(linear(vx, vw) * vb); }, 15, x, w, b);
  check([](const auto& vx, const auto& vw, const auto& vr) { return relu(linear(vx, vw) + vr); }, 15, x, w, r);
  check([](const auto& vx, const auto& vw, const auto& vr) { return linear(vx, vw) * vr + exp(vr); }, 15, x, w, r);
  check([](const auto& vx, const auto& vw) { return linear(vx, vw) / (vx.slice(1, 0, 5) + 3) - vx.slice(1, 2, 7); }, 15,
        x, w);
}

TEST_CASE("an epilogue in the product's kernel gives the bits of a pass of its own, forward and backward", "[grad]") {
  std::mt19937 gen(4);
  const tensor x = cast<float>(random(gen, {67, 130})), w = cast<float>(random(gen, {45, 130}));
  const tensor b = cast<float>(random(gen, {45}));
  const auto same = [&](const auto& f) {
    const variable w1 = w.clone(), w2 = w.clone();
    const variable b1 = b.clone(), b2 = b.clone();
    const variable fused = f(linear(x, w1), b1);
    const variable bare = linear(x, w2);
    const variable apart = f(bare, b2);
    CHECK_FALSE(eval(any(fused.value() != apart.value())).item());
    const auto seed = arange<float>(67 * 45).reshape({67, 45});
    fused.backward(seed);
    apart.backward(seed);
    CHECK_FALSE(eval(any(w1.grad() != w2.grad())).item());
    CHECK_FALSE(eval(any(b1.grad() != b2.grad())).item());
  };
  same([](const auto& h, const auto& v) { return relu(h + v); });
  same([](const auto& h, const auto& v) { return gelu(h + v); });
  same([](const auto& h, const auto& v) { return tanh(h) * v; });
}

TEST_CASE("large products have gradients", "[grad]") {
  std::mt19937 gen(5);
  check([](const auto& x, const auto& y, const auto& b) { return relu(matmul(x, y) + b); }, 2, random(gen, {130, 257}),
        random(gen, {257, 140}), random(gen, {140}));
}

TEST_CASE("a two-layer network has the gradients of its formula", "[grad]") {
  std::mt19937 gen(6);
  const auto x = random(gen, {8, 5});
  const tensor<int, 1> labels{0, 1, 2, 0, 1, 2, 0, 1};
  check(
      [&](const auto& w1, const auto& b1, const auto& w2, const auto& b2) {
        const auto h = relu(linear(x, w1, b1));
        return cross_entropy(linear(h, w2, b2), labels) + 0.01 * sum(w1 * w1);
      },
      10, random(gen, {6, 5}), random(gen, {6}), random(gen, {3, 6}), random(gen, {3}));
}

TEST_CASE("linear takes a bias of one value per output and nothing else", "[matmul]") {
  const tensor<float, 2> x = {{1, 2, 3}, {4, 5, 6}};
  CHECK_THROWS_WITH(eval(linear(x, x, tensor<float, 1>{1})),
                    Catch::Contains("bias of shape (1,)") && Catch::Contains("2 outputs"));
  CHECK_THROWS_AS(eval(linear(x, tensor<float, 2>{{1, 2, 3}}, tensor<float, 1>{1, 2})), shape_error);
}

// tests/cuda/listened_rules_test.cpp: rules about two tape entries write gradients earlier and later than the entries
// alone; what a listener is told, and what lies in homes, is nevertheless what there is at the end.
#include "../grad/listening.hpp"
#include "compare.hpp"

#include <random>

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

template <class D>
struct net {
  std::vector<variable<float, 2, D>> weights;
  std::vector<variable<float, 1, D>> biases;
  tensor<float, 2, D> input;

  net() {
    for (int i = 0; i < 4; ++i) weights.emplace_back(eval(numbers({16, 16}, i) * 0.1f).template to<D>());
    for (int i = 0; i < 4; ++i) biases.emplace_back(numbers({16}, i + 10).template to<D>());
    input = numbers({8, 16}, 20).template to<D>();
  }
  /// Layers of the forms that rules know, with parameters that are used again in between.
  variable<float, 0, D> loss(unsigned seed) const {
    std::mt19937 random(seed);
    const auto below = [&random](unsigned n) { return random() % n; };
    variable<float, 2, D> x = input * 0.1f;
    for (int i = 0; i < 5; ++i) {
      const auto& w = weights[below(4)];
      const auto& b = biases[below(4)];
      switch (below(6)) {
        case 0:
          x = eval(linear(x, w, b));
          break;
        case 1:
          x = relu(linear(x, w, b));
          break;
        case 2:
          x = gelu_tanh(linear(x, w, b));
          break;
        case 3:
          x = b + matmul(x, w);
          break;
        case 4: {
          variable<float, 2, D> product = matmul(x, w);
          const variable<float, 1, D> between = tanh(b);
          x = product + b;
          product = x;
          x = x + between;
          break;
        }
        default:
          x = linear(relu(linear(x, w, b)), weights[below(4)], biases[below(4)]);
      }
    }
    return mean(square(x));
  }
  template <class F>
  void for_each_leaf(const F& f) const {
    for (std::size_t i = 0; i < weights.size(); ++i) f("w" + std::to_string(i), weights[i]);
    for (std::size_t i = 0; i < biases.size(); ++i) f("b" + std::to_string(i), biases[i]);
  }
};

}  // namespace

TEST_CASE("what rules leave to a later product is told behind that", "[cuda]") {
  const net<cpu> host;
  const net<g0> there;
  witness w;
  there.for_each_leaf([&](const std::string& name, const auto& leaf) { w.add(name, leaf); });
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    if (seed == 20) {  // from here on the gradients lie in one tensor
      const auto bucket = zeros<float, g0>({4 * 256 + 4 * 16});
      index_t at = 0;
      there.for_each_leaf([&](const std::string&, const auto& leaf) {
        detail::give_home(leaf, bucket.slice(0, at, at + leaf.numel()));
        at += leaf.numel();
      });
    }
    for (int pass = 0; pass < 2; ++pass) {
      w.forget();
      host.loss(seed).backward();
      there.loss(seed).backward(w.listener);
      w.check();
      double worst = 0;
      const auto compare_to = [&](const auto& a, const auto& b) {
        REQUIRE(a.has_grad() == b.has_grad());
        if (a.has_grad()) worst = std::fmax(worst, distance(a.grad(), b.grad()));
        if (pass == 0) return;
        a.zero_grad();
        b.zero_grad();
      };
      for (std::size_t i = 0; i < 4; ++i) {
        compare_to(there.weights[i], host.weights[i]);
        compare_to(there.biases[i], host.biases[i]);
      }
      CHECK(worst < 1e-3);
    }
  }
}

TEST_CASE("a pass that is captured takes no listener", "[cuda]") {
  const variable x = ones<float, g0>({3});
  const variable y = x * 2;
  gradient_listener listener;
  int told = 0;
  listener.add(x, [&told] { ++told; });
  const std::string name = device_name<g0>();
  const auto seed = ones<float, g0>({3});
  const struct capture {
    explicit capture(const std::string& device) { detail::capturing() = &device; }
    ~capture() { detail::capturing() = nullptr; }
  } now(name);
  CHECK_THROWS_WITH(y.backward(seed, listener),
                    Catch::Contains("backward with a listener while a step on cuda:0 is captured"));
  CHECK(told == 0);
  CHECK_FALSE(x.has_grad());
}

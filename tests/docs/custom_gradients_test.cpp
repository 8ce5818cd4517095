// tests/docs/custom_gradients_test.cpp: the code of docs/custom-gradients.md.
#include "../catch.hpp"

#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

#include <numeric>

using namespace sinter;

// [docs:straight]
const auto quantised = with_gradient([](const auto& x) { return round(x * 8) / 8; },  // forward
                                     [](const auto& g) { return g; });                // backward
// [docs:end]

// [docs:saved]
const auto softplus_of = with_gradient([](const auto& x) { return with_saved(maximum(x, 0) + log1p(exp(-abs(x))), x); },
                                       [](const auto& g, const auto& x) { return g * sigmoid(x); }, "softplus_of");
// [docs:end]

// [docs:several]
const auto linear_of =
    with_gradient([](const auto& x, const auto& w, const auto& b) { return with_saved(matmul(x, w) + b, x, w); },
                  [](const auto& g, const auto& x, const auto& w) {
                    return gradients(matmul(g, w.transpose()), matmul(x.transpose(), g), sum(g, 0));
                  });
// [docs:end]

// [docs:foreign]
/// Running sums by code that knows pointers only.
struct running_sums {
  tensor<float, 1> operator()(const tensor<float, 1>& x) const {
    const tensor from = x.contiguous();  // raw memory: row-major, without gaps
    const auto to = empty<float>({x.extent(0)});
    std::partial_sum(from.begin(), from.end(), to.begin());
    return to;
  }
};
struct running_sums_back {
  tensor<float, 1> operator()(const tensor<float, 1>& g) const { return running_sums()(g.flip(0)).flip(0); }
};
const auto sums_of = with_gradient(running_sums(), running_sums_back(), "sums_of");
// [docs:end]

// [docs:devices]
const auto on_the_far_node = with_gradient<cpu, numa<0>>(
    [](const auto& x, const auto& table) {
      tensor there = x.template to<numa<0>>();
      return with_saved(there * table, there, table);
    },
    [](const auto& g, const auto& x, const auto& table) {
      return gradients(eval(g * table).template to<cpu>(), g * x);
    });
// [docs:end]

// [docs:reversal]
/// Domain-adversarial training (Ganin and Lempitsky, 2015): the layer passes values on and turns gradients around.
auto reverse_gradient(float strength) {
  return with_gradient([](const auto& x) { return x; }, [strength](const auto& g) { return -strength * g; });
}
// [docs:end]

// [docs:checkpoint]
/// A block whose inner values are not kept: backward computes them again.
template <class Block>
auto checkpointed(const Block& block) {
  return with_gradient([block](const auto& x) { return with_saved(infer(block)(x), x); },
                       [block](const auto& g, const auto& x) {
                         const variable again = x;
                         variable(block(again)).backward(g);  // adds to the gradients of the block's parameters
                         return again.grad();
                       });
}
// [docs:end]

TEST_CASE("custom gradients of the page do what it says", "[docs]") {
  const variable x = tensor<float, 1>{0.3f, -2, 40};
  const auto ones = sinter::ones<float>({3});
  // [docs:use]
  variable y = quantised(x * 2) + softplus_of(x);  // variables: recorded
  tensor z = quantised(x.value());                 // tensors: not
  y.backward(ones);
  // [docs:end]
  CHECK(z(0) == 0.25f);
  CHECK(x.grad()(0) == Approx(2 + 1 / (1 + std::exp(-0.3f))));
  CHECK(x.grad()(2) == Approx(3));
  x.zero_grad();
  reverse_gradient(0.5f)(x).backward(ones);
  CHECK(x.grad()(1) == -0.5f);
  x.zero_grad();
  sums_of(x).backward(ones);
  CHECK(x.grad()(0) == 3);
  CHECK(x.grad()(2) == 1);
  x.zero_grad();
  on_the_far_node(x, tensor<float, 1>{1, 2, 3}.to<numa<0>>()).backward(ones.to<numa<0>>());
  CHECK(x.grad()(2) == 3);
}

TEST_CASE("functions of the page agree with what the library derives", "[docs]") {
  generator gen(1);
  const variable x = randn<float>(gen, {5, 3}), w = randn<float>(gen, {3, 4});
  const variable b = randn<float>(gen, {4});
  const tensor seed = randn<float>(gen, {5, 4});
  const auto gradients_by = [&](const auto& f) {
    for (const auto& v : {x, w}) v.zero_grad();
    b.zero_grad();
    variable(f()).backward(seed);
    return std::tuple(x.grad().clone(), w.grad().clone(), b.grad().clone());
  };
  const auto [x1, w1, b1] = gradients_by([&] { return linear_of(x, w, b); });
  const auto [x2, w2, b2] = gradients_by([&] { return matmul(x, w) + b; });
  CHECK(max(abs(x1 - x2)).item() < 1e-5f);
  CHECK(max(abs(w1 - w2)).item() < 1e-5f);
  CHECK(max(abs(b1 - b2)).item() < 1e-5f);

  const nn::sequential block{nn::linear(3, 8, gen), nn::relu(), nn::linear(8, 4, gen)};
  const auto gradients_of_block = [&](const auto& f) {
    x.zero_grad();
    optim::sgd(block, {.lr = 0}).zero_grad();
    variable(f(x)).backward(seed);
    return std::tuple(x.grad().clone(), block.get<0>().weight.grad().clone());
  };
  const auto [x3, w3] = gradients_of_block(checkpointed(block));
  const auto [x4, w4] = gradients_of_block(block);
  CHECK(max(abs(x3 - x4)).item() < 1e-6f);
  CHECK(max(abs(w3 - w4)).item() < 1e-6f);
}

// tests/grad/home_test.cpp: gradients that lie in a slice of somebody else's memory are those that would lie elsewhere.
#include "listening.hpp"

#include <stdexcept>

using namespace sinter;
using Catch::Contains;

namespace {

using matrix = variable<double, 2>;

/// Homes for the parameters of a module, side by side.
template <class T = float>
struct bucket {
  tensor<T, 1> all;
  template <class M>
  explicit bucket(const M& m) {
    index_t n = 0;
    m.for_each_parameter([&n](const auto&, const auto& p) { n += p.numel(); });
    all = full<T>({n}, 7);
    index_t at = 0;
    m.for_each_parameter([&](const auto&, const auto& p) {
      detail::give_home(p, all.slice(0, at, at + p.numel()));
      at += p.numel();
    });
  }
};

/// A parameter used as each kind of entry uses it.
struct every_entry {
  generator gen{1};
  nn::linear<float, cpu> first{6, 6, gen}, second{6, 6, gen}, unused{2, 2, gen};
  nn::conv2d<float, cpu> conv{1, 2, 3, gen, {.padding = 1}};
  tensor<float, 2> input = randn<float>(gen, {6, 6});

  variable<float, 0> loss() const {
    const variable h = tanh(first(input)) * second.weight;
    const variable g = layer_norm(h, second.bias, second.bias) + second.weight.flatten().reshape({6, 6});
    const variable c = conv(g.reshape({1, 1, 6, 6}));
    const variable p = matmul(second.weight.transpose(), first.weight.slice(0, 0, 6)) + first.bias.reshape({1, 6});
    return sum(square(c)) + sum(square(concat(0, p, first.weight)));
  }
  template <class F>
  void for_each_parameter(const F& f) const {
    for (const auto* l : {&first, &second, &unused}) f("weight", l->weight), f("bias", l->bias);
    f("conv", conv.weight), f("conv_bias", conv.bias);
  }
};
template <class M>
void same_gradients(const M& a, const M& b) {
  std::vector<tensor<float, 1>> left, right;
  a.for_each_parameter([&](const auto&, const auto& p) {
    left.push_back(p.has_grad() ? p.grad().contiguous().flatten() : tensor<float, 1>());
  });
  b.for_each_parameter([&](const auto&, const auto& p) {
    right.push_back(p.has_grad() ? p.grad().contiguous().flatten() : tensor<float, 1>());
  });
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    REQUIRE(left[i].defined() == right[i].defined());
    if (left[i].defined()) CHECK(same_bits(left[i], right[i]));
  }
}

}  // namespace

TEST_CASE("gradients in homes are those without, over passes with and without zero_grad, told or not", "[home]") {
  const every_entry at_home, elsewhere;
  const bucket slices(at_home);
  const float* const begin = slices.all.data();
  gradient_listener listener;
  at_home.for_each_parameter([&](const auto&, const auto& p) { listener.add(p, [] {}); });
  const auto check = [&] {
    same_gradients(at_home, elsewhere);
    index_t at = 0;
    at_home.for_each_parameter([&](const auto&, const auto& p) {
      if (p.has_grad()) CHECK(p.grad().data() == begin + at);
      at += p.numel();
    });
  };
  for (int step = 0; step < 3; ++step) {
    at_home.loss().backward(), elsewhere.loss().backward();
    check();
    at_home.loss().backward(listener), elsewhere.loss().backward();
    check();
    const auto loss = at_home.loss();
    loss.backward({.retain_graph = true}), elsewhere.loss().backward();
    loss.backward(), elsewhere.loss().backward();
    check();
    for (const auto* m : {&at_home, &elsewhere})
      m->for_each_parameter([](const auto&, const auto& p) { p.zero_grad(); });
    check();
    at_home.loss().backward(listener), elsewhere.loss().backward();
    check();
    for (const auto* m : {&at_home, &elsewhere})
      m->for_each_parameter([](const auto&, const auto& p) { p.zero_grad(); });
  }
  CHECK(at_home.unused.weight.has_grad() == false);
}

TEST_CASE("the home of a gradient holds what the optimizer and clipping make of it", "[home]") {
  const every_entry at_home, elsewhere;
  const bucket slices(at_home);
  optim::adam one(std::vector{at_home.first.weight, at_home.second.weight}, {.lr = 0.1});
  optim::adam two(std::vector{elsewhere.first.weight, elsewhere.second.weight}, {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    at_home.loss().backward(), elsewhere.loss().backward();
    CHECK(optim::clip_grad_norm(at_home.first, 0.5).item() == optim::clip_grad_norm(elsewhere.first, 0.5).item());
    same_gradients(at_home, elsewhere);
    one.step(), two.step();
    for (const auto* m : {&at_home, &elsewhere})
      m->for_each_parameter([](const auto&, const auto& p) { p.zero_grad(); });
  }
  CHECK(same_bits(at_home.first.weight.value(), elsewhere.first.weight.value()));
  CHECK(same_bits(at_home.second.weight.value(), elsewhere.second.weight.value()));
}

TEST_CASE("zero_grad keeps the home, and a handle shows the gradient of the next pass", "[home]") {
  const matrix w = ones<double>({2, 3});
  const tensor memory = full<double>({8}, 9);
  detail::give_home(w, memory.slice(0, 1, 7));
  CHECK_FALSE(w.has_grad());
  CHECK_THROWS_AS(w.grad(), autograd_error);
  CHECK(memory(1) == 9);
  sum(w * 2).backward();
  const tensor handle = w.grad();
  CHECK(memory(1) == 2);
  CHECK(memory(0) == 9);
  CHECK(memory(7) == 9);
  w.zero_grad();
  CHECK_FALSE(w.has_grad());
  CHECK(handle(1, 2) == 2);
  sum(w * 3).backward();
  CHECK(handle(1, 2) == 3);
  sum(w * 3).backward();
  CHECK(handle(1, 2) == 6);
  // What was recorded over it knows that it was overwritten.
  const variable y = sum(square(w) * handle);
  w.zero_grad();
  sum(w * 4).backward();
  CHECK_THROWS_WITH(y.backward(), Contains("modified in place"));
  CHECK(w.grad()(0, 0) == 4);
}

TEST_CASE("a gradient moves to its home, to another one, and away", "[home]") {
  const matrix w = ones<double>({2, 2});
  sum(w * 2).backward();
  const tensor handle = w.grad();
  const tensor first = zeros<double>({4}), second = zeros<double>({4});
  detail::give_home(w, first);
  CHECK(first(3) == 2);
  detail::give_home(w, second);
  CHECK(second(3) == 2);
  sum(w * 2).backward();
  CHECK(second(3) == 4);
  CHECK(first(3) == 2);
  CHECK(handle(1, 1) == 2);
  detail::take_home(w);
  detail::take_home(w);
  sum(w).backward();
  CHECK(w.grad()(1, 1) == 5);
  CHECK(second(3) == 4);
  detail::give_home(w, first);
  w.zero_grad();
  detail::take_home(w);
  CHECK_FALSE(w.has_grad());
  sum(w).backward();
  CHECK(w.grad()(1, 1) == 1);
}

TEST_CASE("a home is in the order of the value in memory, of any rank and element", "[home]") {
  generator gen(2);
  const tensor<float, 4> image = randn<float>(gen, {2, 3, 4, 5}).to_memory_format(memory_format::channels_last);
  const variable x = image;
  const tensor memory = zeros<float>({120});
  detail::give_home(x, memory);
  sum(x * x.value()).backward();
  CHECK(x.grad().strides() == image.strides());
  CHECK(same_bits(memory, tensor<float, 1>(detail::access::in_memory_order(image))));
  const variable number = full<half>(half(2));
  const tensor one = zeros<half>({1});
  detail::give_home(number, one);
  (number * number).backward();
  CHECK(static_cast<float>(one(0)) == 4);
  const variable nothing = zeros<float>({0, 3});
  detail::give_home(nothing, zeros<float>({0}));
  sum(nothing).backward();
  CHECK(nothing.has_grad());
}

TEST_CASE("a pass that fails leaves gradients in homes as they were", "[home]") {
  const matrix first = ones<double>({2, 2}), last = ones<double>({2, 2});
  const tensor of_first = zeros<double>({4}), of_last = zeros<double>({4});
  detail::give_home(first, of_first);
  detail::give_home(last, of_last);
  bool fails = false;
  const auto f = with_gradient([](const auto& a) { return eval(a * 1); },
                               [&fails](const auto& g) {
                                 if (fails) throw std::runtime_error("half-way");
                                 return g;
                               });
  const auto pass = [&](bool now, bool told) {
    fails = now;
    gradient_listener listener;
    if (told) listener.add(first, [] {}), listener.add(last, [] {});
    const variable loss = sum(f(first * 2) * last);
    if (now) CHECK_THROWS_WITH(loss.backward(listener), "half-way");
    else loss.backward(listener);
  };
  for (const bool told : {false, true}) {
    pass(true, told);
    CHECK_FALSE(last.has_grad());
    pass(false, told);
    pass(true, told);
    CHECK(of_last(0) == 2);
    CHECK(of_first(0) == 2);
    pass(false, told);
    pass(true, told);
    CHECK(of_last(3) == 4);
    CHECK(of_first(3) == 4);
    CHECK(last.grad().data() == of_last.data());
    first.zero_grad();
    last.zero_grad();
  }
}

TEST_CASE("what cannot be a home", "[home]") {
  const matrix w = ones<double>({2, 2});
  CHECK_THROWS_WITH(detail::give_home(w, zeros<double>({5})), Contains("a slice of 5 elements"));
  CHECK_THROWS_AS(detail::give_home(w, tensor<double, 1>()), shape_error);
  CHECK_THROWS_AS(detail::give_home(w, zeros<double>({8}).slice(0, 0, 8, 2)), value_error);
  CHECK_THROWS_WITH(detail::give_home(eval(w * 2), zeros<double>({4})), Contains("is no leaf"));
  CHECK_THROWS_AS(detail::give_home(matrix(), zeros<double>({0})), autograd_error);
  const matrix v = ones<double>({2, 2});
  const auto inside = with_gradient([](const auto& a, const auto& b) { return eval(a + b); },
                                    [&v](const auto& g, const auto&...) {
                                      detail::give_home(v, zeros<double>({4}));
                                      return gradients(g, g);
                                    });
  CHECK_THROWS_WITH(sum(inside(w, w) + v).backward(), Contains("is in a pass"));
}

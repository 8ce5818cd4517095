// tests/grad/listener_test.cpp: a pass tells of each leaf once, when its gradient is what it will be at the end.
#include "listening.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

using namespace sinter;
using Catch::Contains;

namespace {

using matrix = variable<double, 2>;
using row = variable<double, 1>;
using names = std::vector<std::string>;

/// A random graph over weights and biases, of which it need not use all. Equal seeds make equal graphs.
class random_graph {
 public:
  std::vector<matrix> weights;
  std::vector<row> biases;

  explicit random_graph(unsigned seed) : random_(seed) {
    generator gen(seed);
    for (int i = 0; i < 5; ++i) weights.emplace_back(randn<double>(gen, {3, 3}));
    for (int i = 0; i < 3; ++i) biases.emplace_back(randn<double>(gen, {3}));
    input_ = randn<double>(gen, {3, 3});
  }
  template <class F>
  void for_each_leaf(const F& f) const {
    for (std::size_t i = 0; i < weights.size(); ++i) f("w" + std::to_string(i), weights[i]);
    for (std::size_t i = 0; i < biases.size(); ++i) f("b" + std::to_string(i), biases[i]);
  }
  void zero_grad() const {
    for_each_leaf([](const auto&, const auto& leaf) { leaf.zero_grad(); });
  }
  std::vector<tensor<double, 1>> gradients() const {
    std::vector<tensor<double, 1>> all;
    for_each_leaf([&](const auto&, const auto& leaf) {
      all.push_back(leaf.has_grad() ? leaf.grad().flatten().clone() : tensor<double, 1>());
    });
    return all;
  }

  variable<double, 0> loss() {
    std::vector<matrix> made{eval(matmul(input_, any(weights)))};
    const index_t n = 3 + below(12);
    for (index_t i = 0; i < n; ++i) made.push_back(next(any(made)));
    variable<double, 0> sum_of_some = sum(square(made.back()));
    if (below(2)) sum_of_some = sum_of_some + mean(any(made));
    return sum_of_some;
  }

 private:
  index_t below(index_t n) { return static_cast<index_t>(random_() % static_cast<unsigned>(n)); }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[static_cast<std::size_t>(below(static_cast<index_t>(of.size())))];
  }

  matrix next(const matrix& x) {
    const matrix& w = any(weights);
    const row& b = any(biases);
    switch (below(10)) {
      case 0:
        return relu(linear(x, w, b));
      case 1:
        return matmul(x, w) + b;
      case 2:
        return tanh(x * w + b) - w;
      case 3:
        return softmax(x + b, 1);
      case 4:
        return layer_norm(x, b, b);
      case 5:
        return matmul(w.transpose(), x);
      case 6:
        return eval(concat(0, x.slice(0, 0, 1), w.slice(0, 1, 3)));
      case 7:
        return x * w.flatten().reshape({3, 3});
      case 8:
        return x + sum(square(w), 1, keepdim) * b;
      default:
        return by_a_pass_inside(x, w);
    }
  }
  /// tanh(x w), the derivative of which comes from a pass of its own, which has a listener of its own.
  static matrix by_a_pass_inside(const matrix& x, const matrix& w) {
    static const auto f =
        with_gradient([](const auto& a, const auto& b) { return with_saved(tanh(matmul(a, b)), a, b); },
                      [](const auto& g, const auto& a, const auto& b) {
                        const variable u(a), v(b);
                        int told = 0;
                        gradient_listener inside;
                        inside.add(v, [&told] { ++told; });
                        variable(tanh(matmul(u, v))).backward(g, inside);
                        CHECK(told == 1);
                        return sinter::gradients(u.grad(), v.grad());
                      });
    return f(x, w);
  }

  std::mt19937 random_;
  tensor<double, 2> input_;
};

bool same(const std::vector<tensor<double, 1>>& a, const std::vector<tensor<double, 1>>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() != b[i].defined() || (a[i].defined() && !same_bits(a[i], b[i]))) return false;
  return true;
}

/// x, with an error in its backward where `fails`.
matrix failing(const matrix& x, bool& fails) {
  return with_gradient([](const auto& a) { return eval(a * 1); },
                       [&fails](const auto& g) {
                         if (fails) throw std::runtime_error("half-way");
                         return g;
                       })(x);
}

}  // namespace

TEST_CASE("random graphs: what is told is what there is at the end, over two passes", "[listener]") {
  std::size_t ready = 0, unused = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    random_graph g(seed);
    const auto loss = g.loss();
    loss.backward({.retain_graph = true});
    const auto once = g.gradients();
    loss.backward({.retain_graph = true});
    const auto twice = g.gradients();
    g.zero_grad();

    witness w;
    g.for_each_leaf([&](const std::string& name, const auto& leaf) { w.add(name, leaf); });
    loss.backward(w.listener, {.retain_graph = true});
    w.check();
    CHECK(w.unused_first);
    CHECK(same(g.gradients(), once));
    g.for_each_leaf([&](const std::string& name, const auto& leaf) {
      CHECK(leaf.has_grad() == (std::count(w.ready.begin(), w.ready.end(), name) == 1));
    });
    const names order = w.ready;
    ready += w.ready.size();
    unused += w.unused.size();
    w.forget();
    loss.backward(w.listener);
    w.check();
    CHECK(same(g.gradients(), twice));
    CHECK(w.ready == order);
  }
  CHECK(ready > 300);
  CHECK(unused > 300);
}

TEST_CASE("gradients of the last layers are told first, before the first layers have any", "[listener]") {
  generator gen(1);
  const nn::sequential net{nn::linear(4, 5, gen), nn::tanh(), nn::linear(5, 5, gen), nn::relu(), nn::linear(5, 2, gen)};
  witness w;
  w.add_all(net);
  const auto& first = net.get<0>();
  bool first_has_one = false;
  gradient_listener only_last;
  only_last.add(net.get<4>().weight, [&] { first_has_one = first.weight.has_grad(); });
  const tensor x = randn<float>(gen, {6, 4});
  sum(square(net(x))).backward(w.listener);
  w.check();
  CHECK(w.ready == names{"4.bias", "4.weight", "2.bias", "2.weight", "0.bias", "0.weight"});
  CHECK(w.unused.empty());
  net.zero_grad();
  sum(square(net(x))).backward(only_last);
  CHECK_FALSE(first_has_one);
  CHECK(first.weight.has_grad());
}

TEST_CASE("a tied weight is one leaf, told when both its uses are done", "[listener]") {
  generator gen(2);
  const matrix tied = randn<double>(gen, {3, 3}), other = randn<double>(gen, {3, 3}), x = randn<double>(gen, {3, 3});
  const matrix same_one = tied;
  witness w;
  w.add("tied", tied);
  w.add("again", same_one);
  w.add("other", other);
  CHECK(w.listener.size() == 2);
  CHECK_FALSE(w.listener.add(same_one, [] {}));
  sum(matmul(tanh(matmul(tanh(matmul(x, tied)), other)), tied)).backward(w.listener);
  w.check();
  CHECK(w.ready == names{"other", "tied"});
}

TEST_CASE("a listener hears only passes that it is given to, each leaf at most once", "[listener]") {
  const matrix a = ones<double>({2, 2}), b = ones<double>({2, 2});
  witness w;
  w.add("a", a);
  w.add("b", b);
  sum(a * b).backward();
  CHECK(w.ready.empty());
  CHECK(w.unused.empty());
  sum(a * 2).backward(w.listener);
  CHECK(w.ready == names{"a"});
  CHECK(w.unused == names{"b"});
  CHECK(a.grad()(0, 0) == 3);
  w.forget();
  backward(a, ones<double>({2, 2}), w.listener);  // the leaf itself
  CHECK(w.ready == names{"a"});
  CHECK(a.grad()(0, 0) == 4);
  w.forget();
  backward(eval(sum(b)), w.listener);
  CHECK(w.ready == names{"b"});
  gradient_listener none;
  sum(a * b).backward(none);
  CHECK(a.grad()(0, 0) == 5);
}

TEST_CASE("a leaf that no gradient comes through to is ready without one", "[listener]") {
  const matrix a = ones<double>({2, 2}), b = ones<double>({2, 2});
  const auto left = with_gradient([](const auto& x, const auto& y) { return eval(x + y); },
                                  [](const auto& g) { return gradients(g, zero_gradient); });
  witness w;
  w.add("a", a);
  w.add("b", b);
  sum(left(a, b)).backward(w.listener);
  w.check();
  CHECK(w.ready == names{"a", "b"});
  CHECK_FALSE(b.has_grad());
}

TEST_CASE("a step of each parameter as soon as it is ready, its gradient freed", "[listener]") {
  generator gen(3), gen_again(3);
  const nn::sequential one{nn::linear(3, 4, gen), nn::tanh(), nn::linear(4, 2, gen)};
  const nn::sequential two{nn::linear(3, 4, gen_again), nn::tanh(), nn::linear(4, 2, gen_again)};
  const tensor x = randn<float>(gen, {5, 3});
  int most = 0;
  gradient_listener listener;
  one.for_each_parameter([&](const auto&, const auto& p) {
    listener.add(p, [&, p] {
      int now = 0;
      one.for_each_parameter([&now](const auto&, const auto& q) { now += q.has_grad(); });
      most = std::max(most, now);
      p.value() -= 0.1f * p.grad();
      p.zero_grad();
    });
  });
  for (int i = 0; i < 3; ++i) {
    sum(square(one(x))).backward(listener);
    sum(square(two(x))).backward();
    two.for_each_parameter([](const auto&, const auto& p) {
      p.value() -= 0.1f * p.grad();
      p.zero_grad();
    });
  }
  CHECK(most == 1);
  CHECK(same_bits(one.get<0>().weight.value(), two.get<0>().weight.value()));
  CHECK(same_bits(one.get<2>().bias.value(), two.get<2>().bias.value()));
}

TEST_CASE("an error of a listener's function comes when the pass has ended, and disturbs nothing", "[listener]") {
  const matrix a = ones<double>({2, 2}), b = ones<double>({2, 2}), c = ones<double>({2, 2});
  int told = 0;
  gradient_listener listener;
  listener.add(a, [&] { ++told; });
  listener.add(b, [&]() -> void {
    ++told;
    throw std::runtime_error("first");
  });
  listener.add(c, [] {}, [] { throw std::runtime_error("before"); });
  for (int pass = 1; pass <= 2; ++pass) {
    CHECK_THROWS_WITH(sum(square(a * 3) * b).backward(listener), "before");
    CHECK(told == 2 * pass);
    CHECK(a.grad()(0, 0) == 18 * pass);
    CHECK(b.grad()(1, 1) == 9 * pass);
  }
  CHECK_THROWS_WITH(sum(a * b * c).backward(listener), "first");
  sum(a * b).backward();
  CHECK(a.grad()(0, 0) == 38);
}

TEST_CASE("a pass that fails leaves gradients as they were, also those that were told", "[listener]") {
  generator gen(4);
  const matrix x = randn<double>(gen, {3, 3}), first = randn<double>(gen, {3, 3}), last = randn<double>(gen, {3, 3});
  bool fails = true;
  witness w;
  w.add("first", first);
  w.add("last", last);
  const auto loss = [&] { return eval(sum(matmul(tanh(failing(matmul(x, first), fails)), last))); };
  CHECK_THROWS_WITH(loss().backward(w.listener), "half-way");
  CHECK(w.ready == names{"last"});
  CHECK_FALSE(last.has_grad());
  CHECK_FALSE(first.has_grad());
  w.forget();
  fails = false;
  loss().backward(w.listener);
  w.check();
  const tensor before = last.grad().clone(), of_first = first.grad().clone();
  const tensor handle = last.grad();
  w.forget();
  fails = true;
  const auto again = loss();
  CHECK_THROWS_WITH(again.backward(w.listener, {.retain_graph = true}), "half-way");
  CHECK(w.ready == names{"last"});
  CHECK(same_bits(last.grad(), before));
  CHECK(same_bits(handle, before));
  CHECK(same_bits(first.grad(), of_first));
  w.forget();
  fails = false;
  again.backward(w.listener);
  w.check();
  CHECK(same_bits(last.grad(), eval(before * 2)));
}

TEST_CASE("passes of one leaf inside one another", "[listener]") {
  const matrix leaf = ones<double>({2, 2}), x = ones<double>({2, 2});
  witness w;
  w.add("leaf", leaf);
  // A pass inside that adds to a leaf of the pass around: before it is told, it counts; afterwards it is an error.
  const auto adding = with_gradient([](const auto& a) { return eval(a * 1); },
                                    [&leaf](const auto& g) {
                                      sum(leaf * 5).backward();
                                      return g;
                                    });
  sum(adding(x * leaf)).backward(w.listener);
  w.check();
  CHECK(leaf.grad()(0, 0) == 6);
  leaf.zero_grad();
  w.forget();
  CHECK_THROWS_WITH(sum(adding(x * 2) * leaf).backward(w.listener), Contains("told to be complete"));
  CHECK_FALSE(leaf.has_grad());
  CHECK(x.grad()(0, 0) == 1);
  // Two listeners of one leaf at once.
  gradient_listener another;
  another.add(leaf, [] {});
  const auto listening = with_gradient([](const auto& a) { return eval(a * 1); },
                                       [&](const auto& g) {
                                         sum(leaf * 5).backward(another);
                                         return g;
                                       });
  CHECK_THROWS_WITH(sum(listening(x * leaf)).backward(w.listener), Contains("listens to one of these leaves already"));
  const auto same = with_gradient([](const auto& a) { return eval(a * 1); },
                                  [&](const auto& g) {
                                    sum(leaf * 5).backward(w.listener);
                                    return g;
                                  });
  CHECK_THROWS_AS(sum(same(x * leaf)).backward(w.listener), autograd_error);
  CHECK_FALSE(leaf.has_grad());
  w.forget();
  sum(x * leaf).backward(w.listener);
  w.check();
  CHECK(w.ready == names{"leaf"});
}

TEST_CASE("only leaves can be listened to, of order 2 as well", "[listener]") {
  const matrix x = ones<double>({2, 2});
  gradient_listener listener;
  CHECK_THROWS_WITH(listener.add(eval(x * 2), [] {}), Contains("result of a statement"));
  CHECK_THROWS_WITH(listener.add(matrix(), [] {}), Contains("empty"));
  const auto made = [&] {
    const no_grad guard;
    return eval(x * 2);
  }();
  CHECK_THROWS_AS(listener.add(made, [] {}), autograd_error);
  CHECK(listener.size() == 0);
  listener.add(x, [&] { listener.add(matrix(ones<double>({1, 1})), [] {}); });
  CHECK_THROWS_WITH(sum(x).backward(listener), Contains("while a pass"));
  CHECK(listener.size() == 1);

  const variable<double, 1, cpu, 2> z = tensor<double, 1>{1, 2};
  witness w;
  w.add("z", z);
  const variable y = sum(z * z * z);
  const variable slope = grad(y, z);  // no pass: nobody is told
  CHECK(w.ready.empty());
  sum(slope).backward(w.listener);
  w.check();
  CHECK(w.ready == names{"z"});
  CHECK(z.grad()(1) == 12);
}

TEST_CASE("a hundred thousand statements are looked through without recursion", "[listener]") {
  const variable w = ones<double>({1});
  variable y = w;
  for (int i = 0; i < 100000; ++i) y = y + w;
  witness told;
  told.add("w", w);
  sum(y).backward(told.listener);
  told.check();
  CHECK(w.grad()(0) == 100001);
}

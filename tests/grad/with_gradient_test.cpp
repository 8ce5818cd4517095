// tests/grad/with_gradient_test.cpp: functions whose derivative their user writes.
#include "differences.hpp"

#include <numeric>
#include <stdexcept>

namespace {

// Not in namespace sinter: users are not either.
using sinter::cpu;
using sinter::gradients;
using sinter::numa;
using sinter::tensor;
using sinter::variable;
using sinter::with_gradient;
using sinter::with_saved;
using sinter::zero_gradient;

const auto product =
    with_gradient([](const auto& a, const auto& b) { return with_saved(a * b, a, b); },
                  [](const auto& g, const auto& a, const auto& b) { return gradients(g * b, g * a); }, "product");

/// A function of raw memory, as of a foreign library: running sums, which are linear.
struct raw_cumsum {
  tensor<double, 1> operator()(const tensor<double, 1>& x) const {
    const tensor<double, 1> from = x.contiguous(), to = sinter::empty<double>(x.shape());
    std::partial_sum(from.begin(), from.end(), to.begin());
    return to;
  }
};
struct raw_cumsum_back {
  tensor<double, 1> operator()(const tensor<double, 1>& g) const {
    const tensor<double, 1> from = g.contiguous(), to = sinter::empty<double>(g.shape());
    double sum = 0;
    for (sinter::index_t i = g.numel(); i-- > 0;) to.data()[i] = sum += from.data()[i];
    return to;
  }
};

bool same(const tensor<float, 1>& a, std::initializer_list<float> b) {
  return a.shape()[0] == static_cast<sinter::index_t>(b.size()) && std::equal(b.begin(), b.end(), a.begin());
}

}  // namespace

TEST_CASE("the gradient of a function is the one its user wrote", "[with_gradient]") {
  const auto rounded = with_gradient([](const auto& x) { return round(x); }, [](const auto& g) { return g; });
  const auto reversed = with_gradient([](const auto& x) { return x; }, [](const auto& g) { return g * -0.5f; });
  const variable x = tensor<float, 1>{0.2f, 1.7f, -3.4f};
  const tensor<float, 1> seed{1, 10, 100};
  const variable y = rounded(x);
  CHECK(same(y.value(), {0, 2, -3}));
  y.backward(seed);
  CHECK(same(x.grad(), {1, 10, 100}));
  CHECK(same(seed, {1, 10, 100}));
  x.zero_grad();
  const variable z = reversed(x) * 2;
  CHECK(same(z.value(), {0.4f, 3.4f, -6.8f}));
  z.backward(seed);
  CHECK(same(x.grad(), {-1, -10, -100}));
}

TEST_CASE("gradients of functions agree with differences", "[with_gradient]") {
  std::mt19937 gen(1);
  using sinter::extents;
  differences::check([](const auto& a, const auto& b) { return product(a, b); }, 20,
                     differences::random(gen, extents<2>{{3, 4}}), differences::random(gen, extents<2>{{3, 4}}));
  differences::check([](const auto& a, const auto& b) { return product(exp(a), b * 2) + product(b, b); }, 20,
                     differences::random(gen, extents<2>{{3, 4}}), differences::random(gen, extents<2>{{3, 4}}));
  const auto softplus = with_gradient([](const auto& x) { return with_saved(maximum(x, 0) + log1p(exp(-abs(x))), x); },
                                      [](const auto& g, const auto& x) { return g * sigmoid(x); });
  differences::check([&](const auto& x) { return sqrt(softplus(x.transpose())); }, 20,
                     differences::random(gen, extents<2>{{5, 3}}, -3, 3));
  const auto linear =
      with_gradient([](const auto& x, const auto& w, const auto& b) { return with_saved(matmul(x, w) + b, x, w); },
                    [](const auto& g, const auto& x, const auto& w) {
                      return gradients(matmul(g, w.transpose()), matmul(x.transpose(), g), sum(g, 0));
                    });
  differences::check([&](const auto& x, const auto& w, const auto& b) { return tanh(linear(x, w, b)); }, 20,
                     differences::random(gen, extents<2>{{5, 3}}), differences::random(gen, extents<2>{{3, 4}}),
                     differences::random(gen, extents<1>{{4}}));
  const auto sums = with_gradient(raw_cumsum(), raw_cumsum_back(), "cumsum");
  differences::check([&](const auto& x) { return square(sums(x * x)); }, 20, differences::random(gen, extents<1>{{9}}));
  differences::check([&](const auto& x) { return sums(x.select(1, 1)); }, 20,
                     differences::random(gen, extents<2>{{9, 3}}));
}

TEST_CASE("gradients of several uses add up, and each pass adds to those before", "[with_gradient]") {
  const variable x = tensor<float, 1>{1, 2, 3};
  const tensor<float, 1> ones{1, 1, 1};
  const variable y = product(x, x) + x + product(x * 2, tensor<float, 1>{10, 20, 30});
  y.backward(ones, {.retain_graph = true});
  CHECK(same(x.grad(), {23, 45, 67}));
  y.backward(ones);
  CHECK(same(x.grad(), {46, 90, 134}));
  CHECK_THROWS_WITH(y.backward(ones), Catch::Contains("retain_graph"));
}

TEST_CASE("memory that backward returns is not written to later", "[with_gradient]") {
  const tensor<float, 1> held{5, 6, 7};
  float foreign[] = {1, 2, 3};
  const auto constant = with_gradient([](const auto& x) { return x * 1; }, [held](const auto&) { return held; });
  const auto wrapped = with_gradient([](const auto& x) { return x * 1; },
                                     [&foreign](const auto&) { return sinter::wrap<cpu>(foreign, {3}); });
  const auto kept = matmul(tensor<float, 2>{{1, 2, 3}}, tensor<float, 2>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  const auto row = with_gradient([](const auto& x) { return x * 1; }, [&kept](const auto&) { return kept; });
  const variable x = tensor<float, 1>{1, 1, 1};
  const variable m = tensor<float, 2>{{1, 1, 1}};
  sum(constant(x) + x * 10 + constant(x)).backward();
  CHECK(same(x.grad(), {20, 22, 24}));
  CHECK(same(held, {5, 6, 7}));
  x.zero_grad();
  sum(x * 10 + wrapped(x)).backward();
  CHECK(same(x.grad(), {11, 12, 13}));
  x.zero_grad();
  sum(wrapped(x) + x * 10).backward();
  foreign[0] = 100;
  CHECK(same(x.grad(), {11, 12, 13}));
  CHECK(foreign[1] == 2);
  sum(row(m) + m * 10 + row(m)).backward();
  CHECK(sinter::eval(kept)(0, 1) == 2);
  CHECK(m.grad()(0, 2) == 16);
}

TEST_CASE("a saved tensor that was written to is refused", "[with_gradient]") {
  const tensor<float, 1> ones{1, 1, 1};
  const variable a = tensor<float, 1>{1, 2, 3}, b = tensor<float, 1>{4, 5, 6};
  const variable y = product(a, b);
  b.value() += 1;
  CHECK_THROWS_AS(y.backward(ones), sinter::autograd_error);
  CHECK_THROWS_WITH(y.backward(ones), Catch::Contains("product") && Catch::Contains("saved value 2 of shape (3,)"));
  CHECK_FALSE(a.has_grad());
  const auto exponential = with_gradient(
      [](const auto& x) {
        tensor result = exp(x);
        return with_saved(result, result, 3);
      },
      [](const auto& g, const auto& result, int) { return g * result; });
  const variable e = exponential(a);
  e.value() *= 2;
  CHECK_THROWS_WITH(e.backward(ones), Catch::Contains("with_gradient") && Catch::Contains("saved value 1"));
  const variable unread = with_gradient([](const auto& x) { return x * 2; }, [](const auto& g) { return g * 2; })(a);
  a.value() += 1;  // it saves nothing
  CHECK_NOTHROW(unread.backward(ones));
}

TEST_CASE("a function of tensors, or under no_grad, is not recorded", "[with_gradient]") {
  const tensor<float, 1> t{1, 2, 3};
  static_assert(std::is_same_v<decltype(product(t, t)), tensor<float, 1>>);
  static_assert(std::is_same_v<decltype(product(t * 2, exp(t))), tensor<float, 1>>);
  const variable x = t;
  static_assert(std::is_same_v<decltype(product(x, t)), variable<float, 1>>);
  static_assert(std::is_same_v<decltype(product(t, x * 2)), variable<float, 1>>);
  const auto inference_only =
      with_gradient([](const auto& v) { return v * 2; }, [](const auto& g) { return g.no_such_member; });
  CHECK(same(inference_only(t), {2, 4, 6}));  // its backward is not even looked at
  const variable made = [&] {
    const sinter::no_grad guard;
    return product(x, t);
  }();
  CHECK(same(made.value(), {1, 4, 9}));
  CHECK(made.is_leaf());
  CHECK_THROWS_AS(made.backward(t), sinter::autograd_error);
  const variable mixed = product(x, made);  // one operand without a place in the graph
  mixed.backward(tensor<float, 1>{1, 1, 1});
  CHECK(same(x.grad(), {1, 4, 9}));
}

TEST_CASE("the gradient of an operand that nobody tracks is not computed", "[with_gradient]") {
  const auto scaled = with_gradient([](const auto& x, const auto& s) { return with_saved(x * s, s); },
                                    [](const auto& g, const auto& s) {
                                      return gradients(g * s, tensor<float, 1>());
                                    });  // the second is an error if it is read
  const tensor<float, 1> s{1, 2, 3};
  const variable x = s, v = s;
  scaled(x, s).backward(s);
  CHECK(same(x.grad(), {1, 4, 9}));
  CHECK_THROWS_WITH(scaled(x, v).backward(s), Catch::Contains("empty"));
  const auto picked = with_gradient([](const auto& t, const auto& i) { return with_saved(index_select(t, 0, i), i); },
                                    [](const auto& g, const auto&) { return gradients(g * 2, zero_gradient); });
  picked(x, tensor<int, 1>{2, 1, 0}).backward(s);
  CHECK(same(x.grad(), {3, 8, 15}));
  const auto target_ignored = with_gradient([](const auto& a, const auto& b) { return a - b; },
                                            [](const auto& g) { return gradients(g, zero_gradient); });
  target_ignored(v, x * 2).backward(s);
  CHECK(same(v.grad(), {1, 2, 3}));
  CHECK(same(x.grad(), {3, 8, 15}));
}

TEST_CASE("an exception in forward or backward leaves everything usable", "[with_gradient]") {
  bool fails = true;
  const auto shaky = with_gradient([](const auto& a, const auto& b) { return with_saved(a * b, a, b); },
                                   [&fails](const auto& g, const auto& a, const auto& b) {
                                     if (fails) throw std::runtime_error("foreign code failed");
                                     return gradients(g * b, g * a);
                                   });
  const auto misshapen =
      with_gradient([](const auto& a, const auto& b) { return with_saved(a * b, b); },
                    [](const auto& g, const auto& b) { return gradients(g * b, b.slice(0, 0, 2)); }, "misshapen");
  const tensor<float, 1> ones{1, 1, 1};
  const variable x = tensor<float, 1>{1, 2, 3}, w = tensor<float, 1>{4, 5, 6};
  const variable y = shaky(x * 2, w) + x;
  CHECK_THROWS_WITH(y.backward(ones, {.retain_graph = true}), "foreign code failed");
  CHECK_FALSE(x.has_grad());
  CHECK_FALSE(w.has_grad());
  const variable bad = misshapen(x, w);
  CHECK_THROWS_WITH(bad.backward(ones), Catch::Contains("misshapen") && Catch::Contains("operand 2") &&
                                            Catch::Contains("(2,)") && Catch::Contains("(3,)"));
  CHECK_FALSE(x.has_grad());  // its gradient had been made
  fails = false;
  y.backward(ones);
  CHECK(same(x.grad(), {9, 11, 13}));
  CHECK(same(w.grad(), {2, 4, 6}));
  CHECK_THROWS_AS(shaky(x, tensor<float, 1>{1, 2}), sinter::shape_error);
  CHECK_THROWS_AS(shaky(x, tensor<float, 1>()), sinter::shape_error);
  const auto empty =
      with_gradient([](const auto&) { return tensor<float, 1>(); }, [](const auto& g) { return g; }, "blank");
  CHECK_THROWS_WITH(empty(x), Catch::Contains("blank"));
}

TEST_CASE("operands on several devices are declared", "[with_gradient]") {
  using near = numa<0>;
  using far = numa<1>;
  const auto twice = with_gradient([](const auto& x) { return x * 2; }, [](const auto& g) { return g * 2; });
  const auto mixed = with_gradient<near, far>(
      [](const auto& x, const auto& w) {
        tensor moved = x.template to<far>();
        return with_saved(moved * w, moved, w);
      },
      [](const auto& g, const auto& x, const auto& w) {
        return gradients(sinter::eval(g * w).template to<near>(), g * x);
      });
  const variable x = tensor<float, 1>{1, 2, 3}.to<near>();
  const variable w = tensor<float, 1>{4, 5, 6}.to<far>();
  const variable y = mixed(twice(x), w);
  static_assert(std::is_same_v<sinter::device_of<decltype(y)>, far>);
  y.backward(tensor<float, 1>{1, 1, 1}.to<far>());
  CHECK(same(x.grad().to<cpu>(), {8, 10, 12}));
  CHECK(same(w.grad().to<cpu>(), {2, 4, 6}));
  static_assert(std::is_invocable_v<decltype(mixed), decltype(x), decltype(w)>);
  static_assert(!std::is_invocable_v<decltype(mixed), decltype(w), decltype(x)>);
  static_assert(!std::is_invocable_v<decltype(mixed), decltype(w)>);
  static_assert(!std::is_invocable_v<decltype(product), decltype(x), decltype(w)>);
}

TEST_CASE("backward may use variables of its own, as checkpointing does", "[with_gradient]") {
  const variable w = tensor<double, 2>{{0.5, -1}, {0.25, 2}};
  const auto block = [](const auto& x, const auto& weights) { return tanh(matmul(x, weights)); };
  const auto checkpoint =
      with_gradient([&](const auto& x, const auto& weights) { return with_saved(block(x, weights), x, weights); },
                    [&](const auto& g, const auto& x, const auto& weights) {
                      const variable again = x, of_weights = weights;
                      block(again, of_weights).backward(g);
                      return gradients(again.grad(), of_weights.grad());
                    });
  std::mt19937 gen(3);
  differences::check([&](const auto& x, const auto& v) { return checkpoint(checkpoint(x, v), v); }, 20,
                     differences::random(gen, sinter::extents<2>{{3, 2}}), w.value());
}

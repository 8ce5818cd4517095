// tests/sequences/linear_cross_entropy_test.cpp: the loss over many classes, against cross_entropy(linear(x, w, b), t).
// tests/kernels has its values and gradients.
#include <sinter/sequences.hpp>
#include "../catch.hpp"

#include <cmath>
#include <limits>

using namespace sinter;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class A, class B>
double distance(const A& a, const B& b) {
  const auto x = eval(cast<double>(a)), y = eval(cast<double>(b));
  REQUIRE(x.shape() == y.shape());
  return eval(max(abs(x - y) / (1 + abs(y)))).item();
}

/// A layer with its inputs and targets, and the loss and the gradients that f makes of them.
template <class T>
struct layer {
  variable<T, 2> x, w;
  variable<T, 1> b;
  tensor<std::int64_t, 1> targets;

  layer(index_t rows, index_t in, index_t classes, std::uint64_t seed = 1) {
    generator gen(seed);
    x = variable(eval(cast<T>(randn<double>(gen, {rows, in}))));
    w = variable(eval(cast<T>(randn<double>(gen, {classes, in}) * 0.3)));
    b = variable(eval(cast<T>(randn<double>(gen, {classes}))));
    targets = randint<std::int64_t>(gen, 0, classes, {rows});
  }
  struct results {
    tensor<T, 0> loss;
    tensor<T, 2> dx, dw;
    tensor<T, 1> db;
  };
  template <class F>
  results of(const F& f) const {
    (x.zero_grad(), w.zero_grad(), b.zero_grad());
    const variable loss = f(x, w, b, targets);
    loss.backward();
    return {loss.detach(), x.grad().clone(), w.grad().clone(), b.grad().clone()};
  }
};
template <class R>
double distance_of_results(const R& a, const R& b) {
  return std::max({distance(a.loss, b.loss), distance(a.dx, b.dx), distance(a.dw, b.dw), distance(a.db, b.db)});
}
template <class R>
bool is_same(const R& a, const R& b) {
  return distance_of_results(a, b) == 0;
}
const auto apart = [](const auto& x, const auto& w, const auto& b, const auto& t) {
  return eval(cross_entropy(linear(x, w, b), t));
};
auto fused(const linear_cross_entropy_options& o) {
  return
      [o](const auto& x, const auto& w, const auto& b, const auto& t) { return linear_cross_entropy(x, w, b, t, o); };
}

}  // namespace

TEST_CASE("linear_cross_entropy is cross_entropy of linear to rounding, over several blocks of rows", "[sequences]") {
  const auto check = [](auto number, double tolerance) {
    using T = decltype(number);
    const layer<T> l(1100, 20, 70);
    const auto expected = l.of(apart);
    CHECK(distance_of_results(l.of(fused({})), expected) < tolerance);
    CHECK(distance_of_results(l.of(fused({.recompute = true})), expected) < tolerance);
  };
  check(float(), 1e-6);
  check(double(), 1e-14);
  check(half(), 2e-3);
  check(bfloat16(), 2e-2);
}

TEST_CASE("linear_cross_entropy has the same bits for any number of threads, and with scores computed again",
          "[sequences]") {
  const int before = num_threads();
  const layer<float> l(1300, 40, 300);
  for (const bool recompute : {false, true}) {
    set_num_threads(1);
    const auto once = l.of(fused({.recompute = recompute}));
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      CHECK(is_same(l.of(fused({.recompute = recompute})), once));
    }
  }
  set_num_threads(before);
}

TEST_CASE("linear_cross_entropy leaves ignored targets out of its mean and its gradients", "[sequences]") {
  layer<double> l(7, 3, 5);
  l.targets(2) = l.targets(5) = -100;
  const tensor<std::int64_t, 1> some{0, 1, 3, 4, 6};
  const auto kept = eval(index_select(l.targets, 0, some));
  const auto expected = l.of([&](const auto& x, const auto& w, const auto& b, const auto&) {
    return eval(cross_entropy(linear(index_select(x, 0, some), w, b), kept));
  });
  for (const bool recompute : {false, true})
    CHECK(distance_of_results(l.of(fused({.recompute = recompute})), expected) < 1e-14);
  const tensor losses = linear_cross_entropy(l.x.detach(), l.w.detach(), l.b.detach(), l.targets, {}, reduction::none);
  CHECK(losses(2) == 0);
  CHECK(losses(0) > 0);
  const tensor total = linear_cross_entropy(l.x.detach(), l.w.detach(), l.b.detach(), l.targets, {}, reduction::sum);
  CHECK(total.item() == Approx(eval(sum(losses)).item()));

  l.targets = full<std::int64_t>({7}, 3);
  const auto none = l.of(fused({.ignore_index = 3}));
  CHECK(none.loss.item() == 0);
  CHECK(eval(max(abs(none.dx))).item() == 0);
  CHECK(eval(max(abs(none.dw))).item() == 0);
}

TEST_CASE("linear_cross_entropy smooths as cross_entropy does, and adds z_loss logsumexp^2", "[sequences]") {
  const layer<double> l(6, 4, 9);
  const auto expected = l.of([](const auto& x, const auto& w, const auto& b, const auto& t) {
    const auto scores = eval(linear(x, w, b));
    const auto lse = eval(logsumexp(scores, 1));
    return eval(cross_entropy(scores, t, {.label_smoothing = 0.3}) + mean(lse * lse) * 0.02);
  });
  CHECK(distance_of_results(l.of(fused({.label_smoothing = 0.3, .z_loss = 0.02})), expected) < 1e-13);
}

TEST_CASE("linear_cross_entropy of extreme scores is that of cross_entropy", "[sequences]") {
  layer<float> l(4, 2, 3);
  l.x.value().in_place() = tensor<float, 2>{{1, 0}, {-1, 0}, {0, 1}, {0, 0}};
  l.w.value().in_place() = tensor<float, 2>{{1e4, 0}, {-1e4, 0}, {0, 3e38f}};
  l.b.value().in_place() = tensor<float, 1>{0, 0, static_cast<float>(-infinity)};
  l.targets = tensor<std::int64_t, 1>{0, 0, 1, 1};
  const auto expected = l.of(apart), got = l.of(fused({})), again = l.of(fused({.recompute = true}));
  CHECK(std::isfinite(expected.loss.item()));
  CHECK(distance_of_results(got, expected) < 1e-6);
  CHECK(is_same(again, got));
  const tensor losses =
      linear_cross_entropy(l.x.detach(), l.w.detach(), l.b.detach(), tensor<int, 1>{0, 1, 2, 2}, {}, reduction::none);
  CHECK(losses(0) == 0);
  CHECK(losses(1) == 0);
  CHECK(std::isinf(losses(2)));
  CHECK(std::isinf(losses(3)));
}

TEST_CASE("linear_cross_entropy takes inputs of any rank, expressions, and plain or tracked operands", "[sequences]") {
  const layer<double> l(12, 4, 5);
  const auto x = l.x.detach(), w = l.w.detach();
  const auto b = l.b.detach();
  const auto targets = l.targets.reshape({2, 6});
  const tensor rows = linear_cross_entropy(x, w, b, l.targets, {}, reduction::none);
  const tensor cube = linear_cross_entropy(x.reshape({2, 6, 4}), w, b, targets, {}, reduction::none);
  CHECK(distance(cube.reshape({12}), rows) == 0);
  const tensor one = linear_cross_entropy(x[3], w, b, l.targets[3], {}, reduction::none);
  CHECK(distance(one, rows[3]) < 1e-15);
  CHECK(distance(linear_cross_entropy(x * 2, w * 0.5, b, l.targets), linear_cross_entropy(x, w, b, l.targets)) < 1e-14);

  const variable loss = linear_cross_entropy(x.reshape({2, 6, 4}), l.w, b, targets);
  loss.backward();
  const auto all = l.w.grad().clone();
  CHECK(distance(all, l.of(apart).dw) < 1e-14);
  static_assert(!is_tracked_v<decltype(linear_cross_entropy(x, w, targets.flatten()))>);
}

TEST_CASE("linear_cross_entropy can go backward twice, and without rows", "[sequences]") {
  const layer<float> l(600, 4, 30);
  const auto once = l.of(fused({}));
  const auto twice = l.of([](const auto& x, const auto& w, const auto& b, const auto& t) {
    const variable loss = linear_cross_entropy(x, w, b, t);
    loss.backward({.retain_graph = true});
    return loss;
  });
  CHECK(distance(twice.dw, eval(once.dw * 2)) < 1e-6);
  const layer<float> empty(0, 4, 30);
  const auto nothing = empty.of([](const auto& x, const auto& w, const auto& b, const auto& t) {
    return linear_cross_entropy(x, w, b, t, {}, reduction::sum);
  });
  CHECK(nothing.loss.item() == 0);
  CHECK(eval(max(abs(nothing.dw))).item() == 0);
}

TEST_CASE("linear_cross_entropy never holds all scores where they are computed again or nobody asks for gradients",
          "[sequences]") {
  const index_t rows = 4096, classes = 2000;
  const layer<float> l(rows, 8, classes);
  const std::size_t scores = static_cast<std::size_t>(rows * classes) * sizeof(float);
  const auto peak = [&](const auto& work) {
    (l.x.zero_grad(), l.w.zero_grad(), l.b.zero_grad());
    reset_peak_memory<cpu>();
    const std::size_t before = memory<cpu>().bytes_in_use;
    work();
    return memory<cpu>().peak_bytes - before;
  };
  CHECK(peak([&] { linear_cross_entropy(l.x, l.w, l.b, l.targets, {.recompute = true}).backward(); }) < scores / 4);
  CHECK(peak([&] { linear_cross_entropy(l.x.detach(), l.w.detach(), l.b.detach(), l.targets); }) < scores / 4);
  CHECK(peak([&] {
          const no_grad off;
          linear_cross_entropy(l.x, l.w, l.b, l.targets);
        }) < scores / 4);
  const std::size_t kept = peak([&] { linear_cross_entropy(l.x, l.w, l.b, l.targets).backward(); });
  CHECK(kept > scores);
  CHECK(kept < scores + scores / 4);
}

TEST_CASE("linear_cross_entropy names what does not fit", "[sequences]") {
  layer<float> l(6, 4, 5);
  const auto run = [&](const linear_cross_entropy_options& o = {}) {
    linear_cross_entropy(l.x, l.w, l.b, l.targets, o);
  };
  l.targets(3) = 5;
  CHECK_THROWS_WITH(run(), Catch::Contains("linear_cross_entropy: target 5 at position 3 is out of range [0, 5)"));
  l.targets(3) = -1;
  CHECK_THROWS_AS(run(), index_error);
  CHECK_NOTHROW(run({.ignore_index = -1}));
  l.targets(3) = 1;
  CHECK_THROWS_AS(run({.label_smoothing = 1.5}), value_error);
  CHECK_THROWS_AS(run({.z_loss = -1}), value_error);
  const auto wide = variable(zeros<float>({5, 3}));
  CHECK_THROWS_WITH(linear_cross_entropy(l.x, wide, l.b, l.targets), Catch::Contains("they must be (classes,4)"));
  CHECK_THROWS_WITH(linear_cross_entropy(l.x, l.w, zeros<float>({4}), l.targets), Catch::Contains("it must be (5,)"));
  CHECK_THROWS_AS(linear_cross_entropy(l.x, l.w, l.b, l.targets.slice(0, 0, 5)), shape_error);
}

TEST_CASE("gradients of a layer add up over blocks, turned round or not, to what is there", "[sequences]") {
  generator gen(3);
  const auto x = randn<double>(gen, {5, 3}), p = randn<double>(gen, {5, 7});
  const auto before_w = randn<double>(gen, {7, 3}), before_b = randn<double>(gen, {1, 7});
  const tensor expected_w = before_w + matmul(p.transpose(), x), expected_b = before_b + sum(p, 0, keepdim);
  using place = sinter::detail::gradient_place<tensor<double, 2>>;
  for (const index_t most : {0, 21})
    for (const int asked : {1, 2, 3}) {
      INFO("at most " << most << ", of weights and bias " << asked);
      const place dw = (asked & 1) != 0 ? place{before_w.clone(), true} : place{};
      const place db = (asked & 2) != 0 ? place{before_b.clone(), true} : place{};
      sinter::detail::layer_gradients<double, cpu> all(dw, db, 2, 3, 3, 7, most);
      all.add(x.slice(0, 0, 3), p.slice(0, 0, 3));
      all.add(x.slice(0, 3, 5), p.slice(0, 3, 5));
      all.finish();
      if (dw.to.defined()) CHECK(distance(dw.to, expected_w) < 1e-14);
      if (db.to.defined()) CHECK(distance(db.to, expected_b) < 1e-14);
    }
}

TEST_CASE("linear_cross_entropy of no samples is 0, with gradients of 0", "[sequences]") {
  layer<float> l(0, 4, 5);
  const auto of_none = l.of(fused({}));
  CHECK(of_none.loss.item() == 0);
  CHECK(max(abs(of_none.dw)).item() == 0);
  CHECK(max(abs(of_none.db)).item() == 0);
  const layer<float> some(6, 4, 5);
  const auto sum_of = [&](const auto& loss) { return loss.detach().item(); };
  CHECK(sum_of(linear_cross_entropy(some.x, some.w, some.b, some.targets, reduction::sum)) ==
        sum_of(linear_cross_entropy(some.x, some.w, some.b, some.targets, {}, reduction::sum)));
  CHECK(linear_cross_entropy(some.x, some.w, some.targets, reduction::none).shape() == extents<1>{{6}});
}

TEST_CASE("the piece of code in docs/sequences.md", "[sequences][docs]") {
  generator gen(3);
  const nn::linear head(16, 1000, gen);
  const variable h(randn<float>(gen, {4, 7, 16}));
  const tensor<std::int64_t, 2> words = randint<std::int64_t>(gen, 0, 1000, {4, 7});
  // [docs:loss]
  variable loss = linear_cross_entropy(h, head.weight, head.bias, words);  // (N,T,16) and (N,T): the mean of all words
  variable lean = linear_cross_entropy(h, head.weight, head.bias, words, {.ignore_index = 0, .recompute = true});
  // [docs:end]
  loss.backward();
  lean.backward();
  const tensor rare = rand<float>(gen, {1000}) + 0.5f;
  // [docs:weighted_loss]
  const tensor each =
      index_select(rare, 0, words.flatten()).reshape({4, 7});  // of `rare` (1000): the weights of classes
  variable weighted =
      sum(linear_cross_entropy(h, head.weight, head.bias, words, {}, reduction::none) * each) / sum(each);
  // [docs:end]
  const auto scores = eval(linear(h.value().reshape({28, 16}), head.weight.value(), head.bias.value()));
  CHECK(weighted.item() == Approx(cross_entropy(scores, words.flatten(), {.weight = rare}).item()).epsilon(1e-5));
  CHECK(loss.item() > 0);
}

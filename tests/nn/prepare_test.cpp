// tests/nn/prepare_test.cpp: models whose weights are laid out for many calls.
#include "../catch.hpp"

#include <atomic>
#include <cmath>
#include <concepts>
#include <limits>
#include <thread>
#include <vector>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

/// Every kind of product with weights: Winograd's tiles, patches, groups, single channels, one pixel, transposed, few
/// and many rows.
template <device D = cpu, class Kind = nn::tracked>
struct many_kinds : nn::module<many_kinds<D, Kind>> {
  nn::conv2d<float, D, Kind> tiles, strided, grouped, single, squeeze, excite;
  nn::batch_norm2d<float, D, Kind> norm;
  nn::conv_transpose2d<float, D, Kind> wider;
  nn::linear<float, D, Kind> rows, last;

  many_kinds() = default;
  explicit many_kinds(generator& gen)
      : tiles(16, 32, 3, gen, {.padding = 1}),
        strided(32, 48, 3, gen, {.stride = 2, .padding = 1}),
        grouped(48, 48, 3, gen, {.padding = 1, .groups = 3}),
        single(48, 48, 5, gen, {.padding = 2, .groups = 48}),
        squeeze(48, 12, 1, gen),
        excite(12, 48, 1, gen),
        norm(48),
        wider(48, 20, 2, gen, {.stride = 2}),
        rows(20, 70, gen),
        last(70, 10, gen) {}

  template <class X>
  auto forward(const X& x) const {
    const auto a = eval(relu(tiles(x)));
    const auto b = eval(relu(norm(single(grouped(strided(a))))));
    const auto c = eval(b * sigmoid(excite(relu(squeeze(adaptive_avg_pool2d(b, 1))))));
    const auto d = eval(wider(c));
    return last(relu(rows(d.permute({0, 2, 3, 1}))));
  }
  SINTER_MEMBERS(tiles, strided, grouped, single, squeeze, excite, norm, wider, rows, last);
};

double largest(const tensor<float, 4>& x) { return max(abs(x)).item(); }

bool same_bits(const tensor<float, 4>& a, const tensor<float, 4>& b) { return equal(a, b); }

}  // namespace

TEST_CASE("a prepared model gives what infer gives, to rounding, from the first call on", "[prepare]") {
  generator gen(1);
  const many_kinds<> model(gen);
  const auto ready = nn::prepare(model);
  CHECK(ready.bytes() == 0);
  for (const index_t n : {1, 3, 1}) {
    const tensor<float, 4> x = randn(gen, {n, 16, 20, 20});
    const tensor<float, 4> expected = infer(model)(x), first = ready(x), second = ready(x);
    CHECK(max_abs_difference(first, expected) <= 2e-6 * largest(expected));
    CHECK(same_bits(first, second));
  }
  CHECK(ready.bytes() > 0);
}

TEST_CASE("a prepared model keeps a form of each weight once, whatever the size of the input", "[prepare]") {
  generator gen(2);
  nn::sequential model(nn::conv2d(16, 16, 1, gen), nn::relu(), nn::conv2d(16, 16, 3, gen, {.stride = 2}));
  const auto ready = nn::prepare(model);
  static_cast<void>(ready(randn(gen, {1, 16, 8, 8})));
  const std::size_t bytes = ready.bytes();
  CHECK(bytes == (16 * 16 + 9 * 16 * 16) * sizeof(float));
  static_cast<void>(ready(randn(gen, {2, 16, 30, 11})));
  CHECK(ready.bytes() == bytes);
}

TEST_CASE("a prepared model notices that weights were written", "[prepare]") {
  generator gen(3);
  many_kinds<> model(gen);
  const auto ready = nn::prepare(model);
  const tensor<float, 4> x = randn(gen, {2, 16, 12, 12});
  const auto check = [&] {
    const tensor<float, 4> expected = infer(model)(x), y = ready(x);
    CHECK(max_abs_difference(y, expected) <= 2e-6 * largest(expected));
    return y;
  };
  const tensor before = check();
  SECTION("by an optimizer") {
    optim::sgd optimizer(model, {.lr = 0.1});
    variable loss = mean(square(model(x)));
    loss.backward();
    optimizer.step();
  }
  SECTION("by an assignment") { model.strided.weight.value() *= 2.f; }
  SECTION("by load_state") {
    generator other(4);
    nn::load_state(model, nn::state(many_kinds<>(other)));
  }
  SECTION("through data(), which the program says") {
    for (index_t i = 0; i < model.tiles.weight.numel(); ++i) model.tiles.weight.value().data()[i] += 0.125f;
    mark_written(model);
  }
  const std::size_t bytes = ready.bytes();
  CHECK_FALSE(same_bits(before, check()));
  CHECK(ready.bytes() == bytes);
}

TEST_CASE("a prepared model has the same bits for any number of threads", "[prepare]") {
  generator gen(5);
  const many_kinds<> model(gen);
  const int threads = num_threads();
  std::vector<tensor<float, 4>> results;
  const tensor<float, 4> x = randn(gen, {1, 16, 40, 40});
  for (const int n : {1, 2, 5}) {
    set_num_threads(n);
    results.push_back(nn::prepare(model)(x));
  }
  set_num_threads(threads);
  CHECK(same_bits(results[0], results[1]));
  CHECK(same_bits(results[0], results[2]));
}

TEST_CASE("several threads may call one prepared model, from its first call on", "[prepare]") {
  generator gen(6);
  const many_kinds<> model(gen);
  const tensor<float, 4> x = randn(gen, {1, 16, 20, 20});
  const tensor<float, 4> expected = nn::prepare(model)(x);
  const auto ready = nn::prepare(model);
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int call = 0; call < 3; ++call) right += same_bits(ready(x), expected) ? 1 : 0;
    });
  for (std::thread& t : callers) t.join();
  CHECK(right == 12);
}

TEST_CASE("a prepared model keeps the weights alive, and does other work of the model", "[prepare]") {
  generator gen(7);
  const tensor<float, 4> x = randn(gen, {1, 16, 20, 20});
  tensor<float, 4> expected;
  const auto ready = [&] {
    const many_kinds<> model(gen);
    expected = infer(model)(x);
    return nn::prepare(model);
  }();
  const tensor<float, 4> y = ready(x), again = ready.run([&](const auto& view) { return eval(view(x)); });
  CHECK(max_abs_difference(y, expected) <= 2e-6 * largest(expected));
  CHECK(same_bits(y, again));
}

TEST_CASE("what a module gives that is no expression comes as it is", "[prepare]") {
  generator gen(8);
  nn::linear fc(4, 3, gen);
  const auto ready = nn::prepare(fc);
  const auto y = ready(ones<float>({2, 4}));
  static_assert(std::is_same_v<decltype(y), const tensor<float, 2>>);
  CHECK_THROWS_AS(ready(ones<float>({2, 5})), shape_error);
}

TEST_CASE("weights of 8 bits come close, take less memory, and tell how far they are off", "[prepare]") {
  generator gen(9);
  const many_kinds<> model(gen);
  const tensor<float, 4> x = randn(gen, {2, 16, 20, 20});
  const tensor<float, 4> expected = infer(model)(x);
  for (const auto precision : {nn::weight_precision::int8_weights, nn::weight_precision::int8}) {
    const auto ready = nn::prepare(model, {.precision = precision});
    const tensor<float, 4> y = ready(x);
    CHECK(max_abs_difference(y, expected) > 0);
    CHECK(max_abs_difference(y, expected) < 0.03 * largest(expected));
    CHECK(same_bits(y, ready(x)));
    CHECK(ready.weights().size() == 9);
    for (const nn::prepared_weight& w : ready.weights()) {
      INFO(w.name);
      CHECK(w.bytes > 0);
      CHECK(w.error > 0);
      CHECK(w.error < 0.01);
    }
  }
}

TEST_CASE("a layer of 8 bits takes a quarter of the memory, and follows its weights", "[prepare]") {
  generator gen(10);
  nn::linear fc(256, 128, gen);
  const auto ready = nn::prepare(fc, {.precision = nn::weight_precision::int8_weights});
  const auto check = [&] {
    for (const index_t rows : {1, 3, 50}) {
      const tensor<float, 2> x = randn(gen, {rows, 256}), expected = infer(fc)(x);
      CHECK(max_abs_difference(ready(x), expected) < 0.02 * max(abs(expected)).item());
    }
  };
  check();
  CHECK(ready.bytes() == 128 * 256 + 128 * 4);
  fc.weight.value() *= -3.f;
  check();
}

TEST_CASE("few pictures of one pixel have the results of many", "[prepare]") {
  generator gen(14);
  const nn::conv2d conv(70, 37, 1, gen);
  const tensor<float, 4> all = randn(gen, {9, 70, 1, 1});
  for (const auto precision :
       {nn::weight_precision::full, nn::weight_precision::int8_weights, nn::weight_precision::int8}) {
    const auto ready = nn::prepare(conv, precision);
    const auto of_all = eval(ready(all));
    for (const index_t pictures : {1, 2, 3, 4, 5})
      CHECK(max_abs_difference(eval(ready(all.slice(0, 0, pictures))), of_all.slice(0, 0, pictures)) < 1e-5);
    const auto columns = all.slice(0, 0, 3).reshape({1, 3, 70, 1}).permute({0, 2, 1, 3});  // one picture of three
    CHECK(max_abs_difference(eval(ready(columns)).permute({0, 2, 1, 3}).reshape({3, 37, 1, 1}), of_all.slice(0, 0, 3)) <
          1e-5);
  }
}

TEST_CASE("weights that are not finite make their column NaN, and their error", "[prepare]") {
  generator gen(12);
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const auto precision : {nn::weight_precision::int8_weights, nn::weight_precision::int8}) {
      nn::linear fc(40, 3, gen);
      fc.weight.value()(1, 3) = wrong;
      fc.weight.value()(1, 39) = 0.001f;
      nn::conv2d conv(16, 16, 3, gen);
      conv.weight.value()(5, 0, 0, 0) = wrong;
      for (const index_t rows : {1, 9}) {
        const auto ready = nn::prepare(fc, precision);
        const tensor<float, 2> y = ready(ones<float>({rows, 40}));
        for (index_t r = 0; r < rows; ++r) {
          CHECK(std::isfinite(y(r, 0)));
          CHECK(std::isnan(y(r, 1)));
          CHECK(std::isfinite(y(r, 2)));
        }
        CHECK(std::isnan(ready.weights().front().error));
      }
      const auto ready = nn::prepare(conv, precision);
      const tensor<float, 4> y = ready(ones<float>({1, 16, 8, 8}));
      CHECK(std::isnan(y(0, 5, 0, 0)));
      CHECK(std::isfinite(y(0, 4, 0, 0)));
      CHECK(std::isnan(ready.weights().front().error));
    }
}

TEST_CASE("weights and rows of very small numbers stay in their range", "[prepare]") {
  for (const float size : {1e-30f, 1e-36f, 1e-39f, 3e-43f}) {
    const tensor<float, 2> w = eval(full<float>({3, 20}, size)), x = ones<float>({6, 20});
    nn::linear<float, cpu, nn::tracked, false> fc;
    fc.weight = variable<float, 2>(w.clone());
    for (const auto precision : {nn::weight_precision::int8_weights, nn::weight_precision::int8}) {
      const tensor<float, 2> y = nn::prepare(fc, precision)(x);
      CHECK(y(0, 0) >= 0);
      CHECK(y(0, 0) <= 40 * size);
      fc.weight = variable<float, 2>(ones<float>({3, 20}));
      const tensor<float, 2> small = nn::prepare(fc, precision)(eval(x * size));
      CHECK(small(0, 0) >= 0);
      CHECK(small(0, 0) <= 21 * size);
      fc.weight = variable<float, 2>(w.clone());
    }
  }
}

TEST_CASE("forms of a weight that is cut in ever other ways do not grow without bound", "[prepare]") {
  generator gen(13);
  nn::linear fc(64, 512, gen);
  const auto ready = nn::prepare(fc);
  const tensor<float, 2> x = randn(gen, {8, 64});
  ready.run([&](const auto& view) {
    const tensor<float, 2> first = view.weight.slice(0, 0, 200), every_other = view.weight.slice(0, 0, 400, 2);
    static_cast<void>(eval(linear(x, first)));  // as many rows that begin at the same place
    CHECK(max_abs_difference(eval(linear(x, every_other)), eval(linear(x, every_other.clone()))) < 1e-4);
    for (index_t n = 1; n <= 512; ++n) {
      const tensor<float, 2> part = view.weight.slice(0, 0, n), y = linear(x, part);
      if (n % 100 == 0) CHECK(max_abs_difference(y, eval(linear(x, part.clone()))) < 1e-4);
    }
  });
  CHECK(ready.bytes() <= 8 * 64 * 512 * sizeof(float));
}

using ready_linear = nn::prepared<nn::linear<float>>;
static_assert(std::invocable<const ready_linear&, tensor<float, 2>>);
static_assert(!std::invocable<const ready_linear&, variable<float, 2>>);

TEST_CASE("a prepared model can be moved; what was moved from holds nothing", "[prepare]") {
  generator gen(15);
  auto one = nn::prepare(nn::linear(30, 20, gen));
  const tensor<float, 2> x = randn(gen, {6, 30}), y = one(x);
  const auto other = std::move(one);
  CHECK(equal(other(x), y));
  CHECK(one.bytes() == 0);  // NOLINT
  CHECK(one.weights().empty());
}

TEST_CASE("doubles are not rounded", "[prepare]") {
  generator gen(11);
  const nn::linear<double> fc(30, 20, gen);
  const tensor<double, 2> x = randn<double>(gen, {5, 30}), expected = infer(fc)(x);
  CHECK(max_abs_difference(nn::prepare(fc, {.precision = nn::weight_precision::int8})(x), expected) < 1e-12);
}

TEST_CASE("Weights of 8 bits are those of a transposed convolution to few channels", "[prepare]") {
  generator gen(3);
  const nn::conv_transpose2d model(32, 3, 4, gen, {.stride = 2, .padding = 1});
  const tensor<float, 4> x = randn(gen, {2, 32, 16, 16});
  const tensor expected = eval(infer(model)(x));
  CHECK(max_abs_difference(eval(nn::prepare(model)(x)), expected) == 0);
  const auto rounded = nn::prepare(model, nn::weight_precision::int8_weights);
  const auto difference = max_abs_difference(eval(rounded(x)), expected);
  CHECK(difference > 0);
  CHECK(difference < 0.02f * max(abs(expected)).item());
}

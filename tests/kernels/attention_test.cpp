// tests/kernels/attention_test.cpp: scaled dot-product attention on the host devices.
#include "../grad/differences.hpp"
#include "../same_bits.hpp"

#include <sinter/cpu/attention.hpp>
#include <sinter/random/attention_dropout.hpp>

#include "attention.hpp"

using namespace sinter;

using plain::compare, plain::distance, plain::expected_of, plain::operands, plain::sizes, plain::usual_scale;

namespace {

const sizes several[] = {{1, 1, 1, 1, 1, 1, 1},        {2, 3, 3, 5, 5, 4, 4},       {1, 2, 2, 33, 33, 16, 16},
                         {1, 1, 1, 7, 50, 8, 24},      {2, 4, 2, 19, 40, 12, 5},    {1, 6, 1, 130, 131, 33, 17},
                         {1, 1, 1, 300, 290, 64, 64},  {1, 2, 1, 115, 700, 40, 72}, {1, 2, 2, 257, 129, 80, 31},
                         {3, 1, 1, 14, 128, 128, 256}, {1, 1, 1, 64, 1030, 3, 3},   {1, 4, 1, 2, 1500, 24, 40},
                         {2, 8, 2, 1, 600, 64, 64},    {1, 1, 1, 5, 300, 10, 80}};

}  // namespace

TEMPLATE_TEST_CASE("attention has the value and the gradients of plain loops", "[attention]", float, double, half,
                   bfloat16) {
  for (const sizes& s : several)
    for (const bool causal : {false, true}) {
      if (sizeof(TestType) == 2 && s.keys > 300) continue;
      INFO(s.queries << " x " << s.keys << " of " << s.size << ", " << s.value_size << (causal ? ", causal" : ""));
      const operands<TestType> o(s);
      plain::rules r{usual_scale(s.size)};
      if (causal) r.seen = plain::causal(s.queries, s.keys);
      compare(o, r, [&](const auto&... x) { return attention(x..., {.causal = causal}); });
    }
}

TEST_CASE("attention has the gradients of differences", "[attention]") {
  std::mt19937 gen(5);
  const auto q = differences::random(gen, {2, 4, 3, 3}), k = differences::random(gen, {2, 2, 4, 3}),
             v = differences::random(gen, {2, 2, 4, 2});
  const auto bias = differences::random(gen, {4, 1, 4});
  differences::check([](const auto&... x) { return attention(x..., {.causal = true, .scale = 0.7}); }, 12, q, k, v);
  differences::check([](const auto&... x) { return attention(x...); }, 12, q, k, v, bias);
}

TEST_CASE("attention of rank 3 is that of one head", "[attention]") {
  generator gen(1);
  const variable q = randn<float>(gen, {2, 9, 8}), k = randn<float>(gen, {2, 11, 8}), v = randn<float>(gen, {2, 11, 5});
  const tensor y = eval(attention(q, k, v, {.causal = true})).value();
  const tensor same = eval(attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), {.causal = true})).value();
  CHECK(y.shape() == extents<3>{2, 9, 5});
  CHECK(same_bits(y, same.squeeze(1)));
  CHECK(same_bits(y, eval(scaled_dot_product_attention(q, k, v, {.causal = true})).value()));
}

TEST_CASE("heads of queries share the heads of keys in order", "[attention]") {
  for (const sizes& s : {sizes{2, 6, 2, 40, 40, 16, 16}, sizes{1, 8, 1, 17, 300, 20, 12}, sizes{1, 4, 4, 9, 9, 8, 8}}) {
    const operands<float> o(s);
    plain::rules r{usual_scale(s.size)};
    r.seen = plain::causal(s.queries, s.keys);
    compare(o, r, [](const auto&... x) { return attention(x..., {.causal = true}); });
  }
}

TEST_CASE("attention lies in memory as the queries, and takes any strides", "[attention]") {
  const sizes s{2, 3, 3, 21, 33, 16, 24};
  const operands<float> o(s);
  const plain::results expected = expected_of(o, {usual_scale(s.size)});
  const auto turned = [](const tensor<float, 4>& x) { return variable(x.transpose(1, 2).contiguous()); };
  const variable q = turned(o.q.value()), k = turned(o.k.value()), v = turned(o.v.value());  // (N,T,H,d)
  const variable y = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
  CHECK(y.value().transpose(1, 2).is_contiguous());
  y.backward(o.g);
  CHECK(distance(y.value(), expected.y) < 3e-5);
  CHECK(distance(q.grad().transpose(1, 2), expected.dq) < 1e-4);
  CHECK(distance(k.grad().transpose(1, 2), expected.dk) < 1e-4);
  CHECK(distance(v.grad().transpose(1, 2), expected.dv) < 1e-4);

  const tensor wide = zeros<float>({2, 3, 21, 32}), spread = wide.slice(-1, 0, 32, 2);  // every second element
  spread.in_place() = o.q.value();
  const tensor from_spread = attention(spread, o.k.value(), o.v.value());
  CHECK(distance(from_spread, expected.y) < 3e-5);
}

/// How far dq and dk in float are from those in double, over the largest of them.
double gradients_apart(const tensor<float, 4>& q, const tensor<float, 4>& k, const tensor<float, 4>& v,
                       const tensor<float, 4>& g, const tensor<bool, 4>& mask) {
  const auto gradients = [&](auto of) {
    using T = decltype(of);
    const variable a = eval(cast<T>(q)), b = eval(cast<T>(k));
    variable(attention(a, b, eval(cast<T>(v)), mask)).backward(eval(cast<T>(g)));
    return std::pair(a.grad(), b.grad());
  };
  const auto got = gradients(0.0f);
  const auto expected = gradients(0.0);
  const auto apart = [](const auto& x, const auto& y) {
    return eval(max(abs(cast<double>(x) - y))).item() / eval(max(abs(y))).item();
  };
  return std::max(apart(got.first, expected.first), apart(got.second, expected.second));
}

TEST_CASE("gradients of short sequences are accurate where those of weights are nearly alike", "[attention]") {
  // Scores are large: most of a row's weight is on one key, and its gradient is nearly the mean.
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    generator gen(seed);
    const auto made = [&] { return eval(3.f * randn<float>(gen, {2, 2, 3, 8})); };
    const tensor q = made(), k = made(), v = made(), g = made();
    const tensor mask = eval(rand<float>(gen, {2, 2, 3, 3}) < 0.7f);
    CAPTURE(seed);
    CHECK(gradients_apart(q, k, v, g, mask) < 2e-6);
  }
  // Values differ by 3 in 1000, and 1e-7 of their size is 4e-5 of that.
  for (const index_t n : {index_t{3}, index_t{20}, index_t{100}}) {
    generator gen(4);
    const auto made = [&](index_t size) { return eval(3.f * randn<float>(gen, {2, 2, n, size})); };
    const tensor q = made(8), k = made(8), v = eval(1000.f + made(1));
    const tensor g = eval(where(rand<float>(gen, {2, 2, n, 1}) < 0.5f, 1.f, 2.f));
    const tensor mask = eval(rand<float>(gen, {2, 2, n, n}) < 0.7f);
    CAPTURE(n);
    CHECK(gradients_apart(q, k, v, g, mask) < 4e-5);
  }
}

TEST_CASE("gradients of attention are added to what is there", "[attention]") {
  const sizes s{1, 2, 2, 30, 30, 8, 8};
  const operands<float> o(s);
  const plain::results expected = expected_of(o, {usual_scale(s.size)});
  for (int pass = 0; pass < 2; ++pass) {
    const variable y = attention(o.q, o.k, o.v);
    y.backward(o.g);
  }
  CHECK(distance(eval(o.q.grad() / 2.f), expected.dq) < 1e-4);
  CHECK(distance(eval(o.k.grad() / 2.f), expected.dk) < 1e-4);
  CHECK(distance(eval(o.v.grad() / 2.f), expected.dv) < 1e-4);
}

TEST_CASE("attention makes only the gradients that are asked for", "[attention]") {
  const sizes s{1, 2, 1, 40, 50, 8, 12};
  const operands<float> o(s);
  const plain::results expected = expected_of(o, {usual_scale(s.size)});
  const tensor q = o.q.value(), k = o.k.value(), v = o.v.value();
  variable(attention(o.q, k, v)).backward(o.g);
  variable(attention(q, o.k, v)).backward(o.g);
  variable(attention(q, k, o.v)).backward(o.g);
  CHECK(distance(o.q.grad(), expected.dq) < 1e-4);
  CHECK(distance(o.k.grad(), expected.dk) < 1e-4);
  CHECK(distance(o.v.grad(), expected.dv) < 1e-4);
}

TEST_CASE("a mask of bool hides keys, however it is broadcast", "[attention]") {
  const sizes s{2, 4, 2, 37, 150, 16, 16};
  const auto seen = [](index_t b, index_t h, index_t i, index_t j) { return (b * 7 + h * 5 + i * 3 + j) % 4 != 0; };
  const auto check = [&](const tensor<bool, 4>& mask, bool of_batch, bool of_head, bool of_query, bool of_key) {
    for (const bool causal : {false, true}) {
      const operands<float> o(s);
      plain::rules r{usual_scale(s.size)};
      r.seen = [=](index_t b, index_t h, index_t i, index_t j) {
        return seen(of_batch * b, of_head * h, of_query * i, of_key * j) &&
                       (!causal || plain::causal(s.queries, s.keys)(b, h, i, j) != 0)
                   ? 1.0
                   : 0.0;
      };
      compare(o, r, [&](const auto&... x) { return attention(x..., mask, {.causal = causal}); });
    }
  };
  const auto made = [&](index_t n, index_t h, index_t t, index_t k) {
    const tensor mask = empty<bool>({n, h, t, k});
    for (index_t i = 0; i < mask.numel(); ++i)
      mask.data()[i] = seen(i / (h * t * k), i / (t * k) % h, i / k % t, i % k);
    return mask;
  };
  check(made(2, 4, 37, 150), true, true, true, true);
  check(made(1, 1, 37, 150), false, false, true, true);
  check(made(2, 1, 1, 150), true, false, false, true);
  check(made(1, 4, 37, 1), false, true, true, false);
  check(made(2, 4, 37, 150).transpose(2, 3).contiguous().transpose(2, 3), true, true, true, true);

  const operands<float> o(s);
  const tensor rows = made(1, 1, 37, 150);
  CHECK(same_bits(eval(attention(o.q, o.k, o.v, rows)).value(),
                  eval(attention(o.q, o.k, o.v, rows.squeeze(0).squeeze(0))).value()));
}

TEMPLATE_TEST_CASE("an added mask moves scores", "[attention]", float, double, half) {
  const sizes s{2, 2, 2, 20, 45, 8, 8};
  generator gen(2);
  const tensor mask = eval(cast<TestType>(randn<float>(gen, {2, 20, 45})));
  const operands<TestType> o(s);
  plain::rules r{usual_scale(s.size)};
  r.bias = [&](index_t, index_t h, index_t i, index_t j) { return static_cast<double>(mask(h, i, j)); };
  compare(o, r, [&](const auto&... x) { return attention(x..., mask); });
}

TEST_CASE("the gradient of an added mask is summed where the mask is broadcast", "[attention]") {
  const sizes s{2, 4, 2, 70, 150, 8, 8};
  const auto check = [&](const extents<4>& shape) {
    INFO(shape[0] << " " << shape[1] << " " << shape[2] << " " << shape[3]);
    generator gen(2);
    const variable mask = randn<float>(gen, shape);
    const auto at = [&](auto&& x, index_t b, index_t h, index_t i, index_t j) -> decltype(auto) {
      return x(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j);
    };
    const operands<float> o(s);
    plain::rules r{usual_scale(s.size)};
    r.seen = plain::causal(s.queries, s.keys);
    r.bias = [&](index_t b, index_t h, index_t i, index_t j) -> double { return at(mask.value(), b, h, i, j); };
    for (int pass = 0; pass < 2; ++pass) variable(attention(o.q, o.k, o.v, mask, {.causal = true})).backward(o.g);
    const plain::results expected = expected_of(o, r);
    plain::heads sum(shape[0], shape[1], shape[2], shape[3]);
    for (index_t b = 0; b < s.batch; ++b)
      for (index_t h = 0; h < s.heads; ++h)
        for (index_t i = 0; i < s.queries; ++i)
          for (index_t j = 0; j < s.keys; ++j) at(sum, b, h, i, j) += expected.scores(b, h, i, j);
    CHECK(distance(eval(mask.grad() / 2.f), sum) < 1e-4);
    CHECK(distance(eval(o.q.grad() / 2.f), expected.dq) < 1e-4);
  };
  check({2, 4, 70, 150});
  check({1, 4, 70, 150});
  check({2, 1, 1, 150});
  check({1, 1, 70, 1});
  check({1, 4, 1, 1});
}

TEST_CASE("a query that sees no key gives 0 and has gradient 0", "[attention]") {
  const sizes s{1, 2, 2, 50, 40, 8, 8};  // causal: queries 0 to 9 see nothing
  const float lowest = std::numeric_limits<float>::lowest(), infinity = std::numeric_limits<float>::infinity();
  const auto is_zero = [](const tensor<float, 4>& x, index_t query) {
    return eval(max(abs(x.select(2, query)))).item() == 0;
  };
  {
    const operands<float> o(s);
    plain::rules r{usual_scale(s.size)};
    r.seen = plain::causal(s.queries, s.keys);
    const variable y = attention(o.q, o.k, o.v, {.causal = true});
    y.backward(o.g);
    CHECK(is_zero(y.value(), 9));
    CHECK(is_zero(o.q.grad(), 9));
    CHECK_FALSE(is_zero(y.value(), 10));
    CHECK(distance(o.k.grad(), expected_of(o, r).dk) < 1e-4);
  }
  for (const bool boolean : {true, false}) {
    const operands<float> o(s);
    const tensor seen = full<bool>({50, 40}, true);
    const tensor added = zeros<float>({50, 40});
    seen.select(0, 7) = false;
    added.select(0, 7) = -infinity;
    const variable y = boolean ? variable(attention(o.q, o.k, o.v, seen)) : variable(attention(o.q, o.k, o.v, added));
    o.g.select(2, 7) = infinity;  // not even that
    y.backward(o.g);
    CHECK(is_zero(y.value(), 7));
    CHECK(is_zero(o.q.grad(), 7));
    CHECK(eval(all(isfinite(o.k.grad()))).item());
    CHECK(eval(all(isfinite(o.v.grad()))).item());
  }
  const operands<float> o(s);
  const tensor added = zeros<float>({50, 40});
  added.select(0, 7) = lowest;  // uniform weights
  const variable y = attention(o.q, o.k, o.v, added);
  plain::rules r{usual_scale(s.size)};
  r.bias = [&](index_t, index_t, index_t i, index_t) { return i == 7 ? -1e30 : 0.0; };
  const plain::results expected = expected_of(o, r);
  CHECK(distance(y.value(), expected.y) < 3e-5);
  y.backward(o.g);
  CHECK(distance(o.v.grad(), expected.dv) < 1e-4);
}

TEST_CASE("what is not finite reaches no query that does not see it", "[attention]") {
  const sizes s{1, 2, 2, 140, 140, 8, 8};
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  for (const float x : bad) {
    const operands<float> clean(s), o(s);
    const index_t last = 70;  // of the queries whose results are compared
    for (const tensor<float, 4>& t : {o.k.value(), o.v.value()}) t.slice(2, last + 1, last + 2) = x;
    clean.g.slice(2, last + 1, 140) = 0.f;
    o.g.slice(2, last + 1, 140) = 0.f;
    const variable y = attention(o.q, o.k, o.v, {.causal = true});
    const variable expected = attention(clean.q, clean.k, clean.v, {.causal = true});
    CHECK(distance(y.value().slice(2, 0, last + 1), plain::copy_of(expected.value().slice(2, 0, last + 1))) < 1e-6);
    CHECK_FALSE(std::isfinite(y.value()(0, 0, last + 1, 0)));
    y.backward(o.g);
    expected.backward(clean.g);
    CHECK(distance(o.q.grad().slice(2, 0, last + 1), plain::copy_of(clean.q.grad().slice(2, 0, last + 1))) < 1e-6);

    // A few of the queries, as in decoding.
    const operands<float> some(s);
    for (const tensor<float, 4>& t : {some.k.value(), some.v.value()}) t.slice(2, 139, 140) = x;
    const tensor two = attention(some.q.value().slice(2, 138, 140), some.k.value(), some.v.value(), {.causal = true});
    CHECK(distance(two.slice(2, 0, 1),
                   plain::copy_of(
                       eval(attention(some.q, some.k, some.v, {.causal = true})).value().slice(2, 138, 139))) < 1e-6);
    CHECK_FALSE(std::isfinite(two(0, 0, 1, 0)));

    // Padding: no query sees these keys, and they have gradient 0.
    const operands<float> p(s), added(s);
    const tensor seen = full<bool>({1, 1, 1, 140}, true);
    for (const index_t j : {3, 77, 139}) {
      seen.slice(3, j, j + 1) = false;
      for (const tensor<float, 4>& t : {p.k.value(), p.v.value(), added.k.value(), added.v.value()})
        t.slice(2, j, j + 1) = x;
    }
    plain::rules r{usual_scale(s.size)};
    r.seen = [](index_t, index_t, index_t, index_t j) { return j == 3 || j == 77 || j == 139 ? 0.0 : 1.0; };
    compare(p, r, [&](const auto&... a) { return attention(a..., seen); });
    const tensor hides = where(seen, 0.0f, -std::numeric_limits<float>::infinity());
    compare(added, r, [&](const auto&... a) { return attention(a..., hides); });
  }
}

TEST_CASE("attention gives the same bits on any number of threads and any host device", "[attention]") {
  const int before = num_threads();
  for (const sizes& s :
       {sizes{1, 1, 1, 300, 1100, 16, 16}, sizes{2, 4, 2, 130, 140, 8, 24}, sizes{3, 5, 5, 20, 20, 4, 4}}) {
    const auto run = [&]<device D>(std::type_identity<D>) {
      const operands<float> o(s);
      const variable q = o.q.value().template to<D>(), k = o.k.value().template to<D>(),
                     v = o.v.value().template to<D>();
      const variable y = attention(q, k, v, {.causal = true});
      y.backward(o.g.template to<D>());
      return std::tuple(y.value(), q.grad(), k.grad(), v.grad());
    };
    set_num_threads(1);
    const auto [y, dq, dk, dv] = run(std::type_identity<cpu>());
    for (const int threads : {2, 3, 4}) {
      set_num_threads(threads);
      const auto [y2, dq2, dk2, dv2] = run(std::type_identity<cpu>());
      CHECK(same_bits(y, y2));
      CHECK(same_bits(dq, dq2));
      CHECK(same_bits(dk, dk2));
      CHECK(same_bits(dv, dv2));
    }
    const auto [y3, dq3, dk3, dv3] = run(std::type_identity<numa<0>>());
    CHECK(same_bits(y, y3));
    CHECK(same_bits(dq, dq3));
    CHECK(same_bits(dk, dk3));
    CHECK(same_bits(dv, dv3));
  }
  set_num_threads(before);
}

TEST_CASE("attention of nothing is nothing", "[attention]") {
  const tensor none = attention(zeros<float>({2, 3, 0, 4}), zeros<float>({2, 3, 5, 4}), zeros<float>({2, 3, 5, 6}));
  CHECK(none.shape() == extents<4>{2, 3, 0, 6});
  const variable q = ones<float>({1, 1, 3, 4}), k = ones<float>({1, 1, 0, 4}), v = ones<float>({1, 1, 0, 2});
  const variable y = attention(q, k, v);  // no keys
  y.backward(ones<float>({1, 1, 3, 2}));
  CHECK(eval(max(abs(y.value()))).item() == 0);
  CHECK(eval(max(abs(q.grad()))).item() == 0);
  const tensor sizeless = attention(ones<float>({1, 2, 0}), ones<float>({1, 3, 0}), ones<float>({1, 3, 2}));
  CHECK(sizeless.shape() == extents<3>{1, 2, 2});
  const variable u = ones<float>({1, 30, 4}), valueless = attention(u, u, zeros<float>({1, 30, 0}));
  valueless.backward(zeros<float>({1, 30, 0}));
  CHECK(eval(max(abs(u.grad()))).item() == 0);
  const tensor no_batch = attention(zeros<float>({0, 3, 4}), zeros<float>({0, 5, 4}), zeros<float>({0, 5, 6}));
  CHECK(no_batch.numel() == 0);
}

TEST_CASE("operands of attention that do not fit are named", "[attention]") {
  const tensor q = zeros<float>({2, 4, 5, 8});
  CHECK_THROWS_WITH(attention(q, zeros<float>({1, 4, 5, 8}), q), Catch::Contains("are of one batch"));
  CHECK_THROWS_WITH(attention(q, zeros<float>({2, 4, 5, 6}), q), Catch::Contains("another size"));
  CHECK_THROWS_WITH(attention(q, zeros<float>({2, 4, 6, 8}), q), Catch::Contains("each key has one value"));
  const tensor odd = zeros<float>({2, 3, 5, 8});
  CHECK_THROWS_WITH(attention(q, odd, odd), Catch::Contains("3 heads of keys do not divide the 4 heads"));
  CHECK_THROWS_WITH(attention(q, q, q, zeros<float>({5, 6})),
                    Catch::Contains("does not fit scores of shape (2, 4, 5, 5)"));
  CHECK_THROWS_AS(attention(q, q, q, zeros<float>({3, 1, 5, 5})), shape_error);
  CHECK_THROWS_WITH(attention(q, q, q, {.scale = std::numeric_limits<double>::infinity()}),
                    Catch::Contains("scale must be finite"));
  CHECK_THROWS_AS(attention(q, q, q, {.dropout = 1.5}), value_error);
  CHECK_THROWS_WITH(attention(q, q, q, {.dropout = 0.5}), Catch::Contains("needs a generator"));
}

TEMPLATE_TEST_CASE("a formula of the scores is part of the kernels, with its derivative", "[attention]", float, double,
                   bfloat16) {
  const sizes s{2, 3, 3, 40, 150, 16, 8};
  const operands<TestType> o(s), p(s), w(s), m(s);
  plain::rules r{usual_scale(s.size)};
  r.score = [](double x) { return 2 * std::tanh(x / 2) + 0.5 * x; };
  r.slope = [](double x) { return 1.5 - std::pow(std::tanh(x / 2), 2); };
  const auto cap = [](auto x, const auto&) { return 2 * math::tanh(x / 2) + 0.5 * x; };
  compare(o, r, [&](const auto&... x) { return attention(x..., cap); });

  const double slopes[] = {0.5, 0.25, 0.125};
  plain::rules alibi{usual_scale(s.size)};
  alibi.seen = plain::causal(s.queries, s.keys);
  alibi.bias = [&](index_t, index_t h, index_t i, index_t j) { return slopes[h] * static_cast<double>(j - i) / 8; };
  compare(p, alibi, [&](const auto&... x) {
    return attention(x...,
                     [&](auto score, const auto& at) { return score + (at.key - at.query) * (slopes[at.head] / 8); },
                     {.causal = true});
  });

  plain::rules window{usual_scale(s.size)};
  window.seen = [](index_t, index_t, index_t i, index_t j) { return j > i + 90 - 20 && j <= i + 90 ? 1.0 : 0.0; };
  compare(w, window, [&](const auto&... x) {
    return attention(x..., [](auto score, const auto& at) {
      return at.only_where(at.key > at.query + 70, at.only_where(at.key <= at.query + 90, score));
    });
  });
  const operands<TestType> same(s);
  compare(same, window, [](const auto&... x) { return attention(x..., sliding_window(19, 90)); });

  const tensor<bool, 2> even = empty<bool>({40, 150});
  for (index_t i = 0; i < even.numel(); ++i) even.data()[i] = i % 2 == 0;
  plain::rules both = r;
  both.seen = [&](index_t, index_t, index_t i, index_t j) { return even(i, j) ? 1.0 : 0.0; };
  compare(m, both, [&](const auto&... x) { return attention(x..., even, cap); });
}

TEST_CASE("a formula and an added mask have the gradients of differences", "[attention]") {
  std::mt19937 gen(5);
  const auto q = differences::random(gen, {1, 2, 3, 3}), k = differences::random(gen, {1, 2, 4, 3}),
             v = differences::random(gen, {1, 2, 4, 2});
  const auto bias = differences::random(gen, {3, 4});
  const auto check = [&](const auto& score) {
    differences::check([&](const auto&... x) { return attention(x..., score); }, 12, q, k, v, bias);
  };
  check([](auto s, const auto&) { return math::exp(s) - math::sqrt(1 + s * s) / 3; });
  check([](auto s, const auto& at) { return math::max(s, -0.2) * math::sigmoid(s) + at.key; });
  check([](auto s, const auto&) { return math::select(s > 0, s / (1 + math::abs(s)), math::log1p(s * s)); });
}

TEST_CASE("documents that follow each other do not see each other", "[attention]") {
  const sizes s{1, 2, 2, 100, 100, 8, 8};
  plain::rules r{usual_scale(s.size)};
  r.seen = [](index_t, index_t, index_t i, index_t j) { return i / 37 == j / 37 ? 1.0 : 0.0; };
  struct same_document : ops::plain_score {
    key_range keys(index_t, index_t, index_t first, index_t last) const {
      return {first / 37 * 37, std::min<index_t>((last - 1) / 37 * 37 + 37, 100)};
    }
  };
  compare(operands<float>(s), r, [](const auto&... x) { return attention(x..., same_document()); });
}

TEST_CASE("dropout of attention is that of the weights, and the same in backward", "[attention]") {
  for (const sizes& s : {sizes{2, 3, 3, 37, 150, 16, 8}, sizes{1, 2, 1, 20, 41, 8, 8}}) {
    const double p = 0.25;
    generator gen(9), again(9);
    const operands<double> o(s);
    const tensor factors = eval(dropout(ones<double>({s.batch, s.heads, s.queries, s.keys}), p, again));
    plain::rules r{usual_scale(s.size)};
    r.factor = [&](index_t b, index_t h, index_t i, index_t j) { return factors(b, h, i, j); };
    compare(o, r, [&](const auto&... x) { return attention(x..., {.dropout = p}, gen); });
    CHECK(gen.offset() == again.offset());

    const operands<double> m(s);
    const tensor mask = full<bool>({s.queries, s.keys}, true);
    mask.slice(1, 3, 5) = false;
    r.seen = [](index_t, index_t, index_t, index_t j) { return j == 3 || j == 4 ? 0.0 : 1.0; };
    generator third(9);
    compare(m, r, [&](const auto&... x) { return attention(x..., mask, {.dropout = p}, third); });
  }
  const operands<float> o({2, 4, 4, 60, 60, 8, 8});
  generator gen(1);
  CHECK(same_bits(eval(attention(o.q, o.k, o.v, {}, gen)).value(), eval(attention(o.q, o.k, o.v)).value()));
  CHECK(eval(max(abs(eval(attention(o.q, o.k, o.v, {.dropout = 1}, gen)).value()))).item() == 0);
  generator whole(7), part(7);
  const tensor all_samples = eval(attention(o.q, o.k, o.v, {.dropout = 0.5}, whole)).value();
  const samples_from guard(1);
  const auto second = [](const variable<float, 4>& x) { return x.value().slice(0, 1, 2); };
  const tensor one = scaled_dot_product_attention(second(o.q), second(o.k), second(o.v), {.dropout = 0.5}, part);
  CHECK(same_bits(all_samples.slice(0, 1, 2), one));
  tensor sum = zeros<float>({2, 4, 60, 8});
  const int draws = 400;
  for (int i = 0; i < draws; ++i) sum = sum + eval(attention(o.q, o.k, o.v, {.dropout = 0.5}, gen)).value();
  const double off = eval(max(abs(sum / static_cast<float>(draws) - eval(attention(o.q, o.k, o.v)).value()))).item();
  CHECK(off < 0.2);
}

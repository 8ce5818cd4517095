// tests/cuda/attention_test.cpp: attention on a GPU against plain loops in double. What the tests of the host look at
// is looked at here, in sizes for tiles of a GPU.
#include <sinter/sequences.hpp>

#include "../kernels/attention.hpp"
#include "../same_bits.hpp"
#include "compare.hpp"

// What <sinter/sequences.hpp> includes for GPUs, where they are not simulated.
#include "sinter/cuda/attention.hpp"

namespace attention_on_gpu {

using namespace sinter;
using g0 = cuda<0>;
using plain::distance, plain::sizes, plain::usual_scale;
template <class T>
using operands = plain::operands<T, g0>;

struct soft_cap {
  template <class V, class P>
  constexpr auto operator()(V s, const P&) const {
    return 2 * math::tanh(s / 2) + s / 2;
  }
};
// [docs:formula]
struct by_distance {  // ALiBi; numbers are held, not pointed to
  float slopes[3];
  template <class V, class P>
  constexpr auto operator()(V s, const P& at) const {
    return s + (at.key - at.query) * slopes[at.head];
  }
};
// [docs:end]
struct between {
  float least, most;
  template <class V, class P>
  constexpr auto operator()(V s, const P& at) const {
    return at.only_where(at.key > at.query + least, at.only_where(at.key <= at.query + most, s));
  }
};
struct same_document : ops::plain_score {
  index_t of_one, all;
  constexpr same_document(index_t each, index_t n) : of_one(each), all(n) {}
  constexpr key_range keys(index_t, index_t, index_t first, index_t last) const {
    const index_t end = (last - 1) / of_one * of_one + of_one;
    return {first / of_one * of_one, end < all ? end : all};
  }
};

template <class T, int R>
tensor<T, R, g0> there(const tensor<T, R>& x) {
  return x.template to<g0>();
}
template <class X>
double largest(const X& x) {
  const tensor host = x.template to<cpu>();
  return static_cast<double>(eval(max(abs(host))).item());
}
template <class X>
bool is_finite(const X& x) {
  const tensor host = x.template to<cpu>();
  return eval(all(isfinite(host))).item();
}

}  // namespace attention_on_gpu

using namespace attention_on_gpu;

TEMPLATE_TEST_CASE("attention on a GPU has the value and the gradients of plain loops", "[cuda][attention]", float,
                   double, sinter::half, bfloat16) {
  for (const sizes& s :
       {sizes{1, 1, 1, 1, 1, 1, 1}, sizes{2, 3, 3, 5, 5, 4, 4}, sizes{2, 4, 2, 19, 40, 12, 5},
        sizes{1, 2, 1, 70, 131, 33, 17}, sizes{1, 1, 1, 67, 65, 130, 140}, sizes{1, 4, 1, 2, 200, 24, 40}})
    for (const bool causal : {false, true}) {
      if (sizeof(TestType) == 2 && s.size != 12) continue;
      INFO(s.queries << " x " << s.keys << " of " << s.size << ", " << s.value_size << (causal ? ", causal" : ""));
      const operands<TestType> o(s);
      plain::rules r{usual_scale(s.size)};
      if (causal) r.seen = plain::causal(s.queries, s.keys);
      plain::compare(o, r, [&](const auto&... x) { return attention(x..., {.causal = causal}); });
    }
}

TEST_CASE("attention on a GPU takes any strides, and gives the same bits again", "[cuda][attention]") {
  const sizes s{2, 3, 3, 21, 70, 16, 24};
  const operands<float> o(s);
  const plain::results expected = plain::expected_of(o, {usual_scale(s.size)});
  const auto turned = [](const tensor<float, 4, g0>& x) { return variable(x.transpose(1, 2).contiguous()); };
  const variable q = turned(o.q.value()), k = turned(o.k.value()), v = turned(o.v.value());  // (N,T,H,d)
  const variable y = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
  CHECK(y.value().transpose(1, 2).is_contiguous());
  y.backward(o.g);
  CHECK(distance(y.value(), expected.y) < 3e-5);
  CHECK(distance(q.grad().transpose(1, 2), expected.dq) < 1e-4);
  CHECK(distance(k.grad().transpose(1, 2), expected.dk) < 1e-4);
  CHECK(distance(v.grad().transpose(1, 2), expected.dv) < 1e-4);
  const tensor wide = zeros<float, g0>({2, 3, 21, 32}), spread = wide.slice(-1, 0, 32, 2);  // every second element
  spread.in_place() = o.q.value();
  const tensor from_spread = attention(spread, o.k.value(), o.v.value());
  CHECK(same_bits(from_spread, y.value()));

  const variable again = attention(o.q, o.k, o.v);
  again.backward(o.g.contiguous());
  CHECK(same_bits(again.value(), y.value()));
  CHECK(same_bits(o.q.grad(), q.grad().transpose(1, 2)));
  CHECK(same_bits(o.k.grad(), k.grad().transpose(1, 2)));
  CHECK(same_bits(o.v.grad(), v.grad().transpose(1, 2)));

  const tensor of_rank_3 = attention(o.q.value().select(1, 0), o.k.value().select(1, 0), o.v.value().select(1, 0));
  CHECK(same_bits(of_rank_3, y.value().select(1, 0)));
}

TEST_CASE("a GPU adds the gradients of attention to what is there, and makes only those asked for",
          "[cuda][attention]") {
  const sizes s{1, 4, 2, 40, 50, 8, 12};
  const operands<float> o(s), one(s);
  const plain::results expected = plain::expected_of(o, {usual_scale(s.size)});
  for (int pass = 0; pass < 2; ++pass) variable(attention(o.q, o.k, o.v)).backward(o.g);
  const auto half_of = [](const tensor<float, 4, g0>& x) { return eval(x / 2.f); };
  CHECK(distance(half_of(o.q.grad()), expected.dq) < 1e-4);
  CHECK(distance(half_of(o.k.grad()), expected.dk) < 1e-4);
  CHECK(distance(half_of(o.v.grad()), expected.dv) < 1e-4);
  const tensor q = one.q.value(), k = one.k.value(), v = one.v.value();
  variable(attention(one.q, k, v)).backward(o.g);
  variable(attention(q, one.k, v)).backward(o.g);
  variable(attention(q, k, one.v)).backward(o.g);
  CHECK(distance(one.q.grad(), expected.dq) < 1e-4);
  CHECK(distance(one.k.grad(), expected.dk) < 1e-4);
  CHECK(distance(one.v.grad(), expected.dv) < 1e-4);
}

TEST_CASE("a mask of bool hides keys from a GPU's queries, however it is broadcast", "[cuda][attention]") {
  const sizes s{2, 4, 2, 37, 90, 16, 16};
  const auto seen = [](index_t b, index_t h, index_t i, index_t j) { return (b * 7 + h * 5 + i * 3 + j) % 4 != 0; };
  for (const extents<4>& shape :
       {extents<4>{2, 4, 37, 90}, extents<4>{1, 1, 37, 90}, extents<4>{2, 1, 1, 90}, extents<4>{1, 4, 37, 1}}) {
    const tensor mask = empty<bool>(shape);
    const auto last = [&](index_t i, int d) { return shape[d] > 1 ? i : 0; };
    for (index_t b = 0; b < shape[0]; ++b)
      for (index_t h = 0; h < shape[1]; ++h)
        for (index_t i = 0; i < shape[2]; ++i)
          for (index_t j = 0; j < shape[3]; ++j) mask(b, h, i, j) = seen(b, h, i, j);
    const bool causal = shape[0] == 2;
    plain::rules r{usual_scale(s.size)};
    r.seen = [&](index_t b, index_t h, index_t i, index_t j) {
      const bool sees = seen(last(b, 0), last(h, 1), last(i, 2), last(j, 3));
      return sees && (!causal || plain::causal(s.queries, s.keys)(b, h, i, j) != 0) ? 1.0 : 0.0;
    };
    const auto turned = there(mask.transpose(2, 3).contiguous()).transpose(2, 3);
    plain::compare(operands<float>(s), r,
                   [&](const auto&... x) { return attention(x..., turned, {.causal = causal}); });
  }
}

TEMPLATE_TEST_CASE("a GPU sums the gradient of an added mask where the mask is broadcast", "[cuda][attention]", float,
                   double, sinter::half) {
  const sizes s{2, 2, 1, 66, 67, 4, 4};
  for (const extents<4>& shape : {extents<4>{1, 2, 66, 67}, extents<4>{2, 1, 1, 67}, extents<4>{1, 1, 66, 1},
                                  extents<4>{2, 2, 66, 67}, extents<4>{1, 2, 1, 1}, extents<4>{1, 1, 1, 1}}) {
    if (sizeof(TestType) != 4 && shape[1] == shape[0]) continue;
    INFO(shape[0] << " " << shape[1] << " " << shape[2] << " " << shape[3]);
    generator gen(2);
    const tensor host = eval(cast<TestType>(randn<float>(gen, shape)));
    const variable mask = there(host);
    const auto at = [&](auto&& x, index_t b, index_t h, index_t i, index_t j) -> decltype(auto) {
      return x(shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, shape[2] == 1 ? 0 : i, shape[3] == 1 ? 0 : j);
    };
    const operands<TestType> o(s);
    plain::rules r{usual_scale(s.size)};
    r.seen = plain::causal(s.queries, s.keys);
    r.bias = [&](index_t b, index_t h, index_t i, index_t j) { return static_cast<double>(at(host, b, h, i, j)); };
    for (int pass = 0; pass < 2; ++pass) variable(attention(o.q, o.k, o.v, mask, {.causal = true})).backward(o.g);
    const plain::results expected = plain::expected_of(o, r);
    plain::heads sum(shape[0], shape[1], shape[2], shape[3]);
    for (index_t b = 0; b < s.batch; ++b)
      for (index_t h = 0; h < s.heads; ++h)
        for (index_t i = 0; i < s.queries; ++i)
          for (index_t j = 0; j < s.keys; ++j) at(sum, b, h, i, j) += expected.scores(b, h, i, j);
    const double within = 3 * plain::tolerance<TestType>;
    CHECK(distance(eval(mask.grad() / TestType(2)), sum) < within);
    CHECK(distance(eval(o.q.grad() / TestType(2)), expected.dq) < within);
  }
  const tensor<TestType, 2> wide = eval(cast<TestType>(ones<float>({66, 67})));
  const variable turned = there(wide.transpose().contiguous());
  const variable straight = there(wide);
  const operands<TestType> o(s);
  variable(attention(o.q, o.k, o.v, turned.transpose())).backward(o.g);
  variable(attention(o.q, o.k, o.v, straight)).backward(o.g);
  CHECK(same_bits(turned.grad().transpose(), straight.grad()));
}

TEST_CASE("a query of a GPU that sees no key gives 0 and has gradient 0", "[cuda][attention]") {
  const sizes s{1, 2, 2, 80, 70, 8, 8};  // causal: queries 0 to 9 see nothing
  const float infinity = std::numeric_limits<float>::infinity();
  const auto of_query = [](const tensor<float, 4, g0>& x, index_t query) { return largest(x.select(2, query)); };
  {
    const operands<float> o(s);
    plain::rules r{usual_scale(s.size)};
    r.seen = plain::causal(s.queries, s.keys);
    const variable y = attention(o.q, o.k, o.v, {.causal = true});
    y.backward(o.g);
    CHECK(of_query(y.value(), 9) == 0);
    CHECK(of_query(o.q.grad(), 9) == 0);
    CHECK(of_query(y.value(), 10) > 0);
    CHECK(distance(o.k.grad(), plain::expected_of(o, r).dk) < 1e-4);
  }
  for (const bool boolean : {true, false}) {
    const operands<float> o(s);
    const tensor seen = full<bool>({80, 70}, true);
    const tensor added = zeros<float>({80, 70});
    seen.select(0, 7) = false;
    added.select(0, 7) = -infinity;
    const variable y =
        boolean ? variable(attention(o.q, o.k, o.v, there(seen))) : variable(attention(o.q, o.k, o.v, there(added)));
    o.g.select(2, 7) = infinity;  // not even that
    y.backward(o.g);
    CHECK(of_query(y.value(), 7) == 0);
    CHECK(of_query(o.q.grad(), 7) == 0);
    CHECK(is_finite(o.k.grad()));
    CHECK(is_finite(o.v.grad()));
  }
  const operands<float> o(s);
  const tensor added = zeros<float>({80, 70});
  added.select(0, 7) = std::numeric_limits<float>::lowest();  // uniform weights
  const variable y = attention(o.q, o.k, o.v, there(added));
  plain::rules r{usual_scale(s.size)};
  r.bias = [&](index_t, index_t, index_t i, index_t) { return i == 7 ? -1e30 : 0.0; };
  const plain::results expected = plain::expected_of(o, r);
  CHECK(distance(y.value(), expected.y) < 3e-5);
  y.backward(o.g);
  CHECK(distance(o.v.grad(), expected.dv) < 1e-4);
}

TEST_CASE("what is not finite reaches no query of a GPU that does not see it", "[cuda][attention]") {
  const sizes s{1, 2, 2, 80, 80, 8, 8};
  for (const float x : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const operands<float> clean(s), o(s);
    const index_t last = 40;  // of the queries whose results are compared
    for (const tensor<float, 4, g0>& t : {o.k.value(), o.v.value()}) t.slice(2, last + 1, last + 2) = x;
    clean.g.slice(2, last + 1, 80) = 0.f;
    o.g.slice(2, last + 1, 80) = 0.f;
    const variable y = attention(o.q, o.k, o.v, {.causal = true});
    const variable expected = attention(clean.q, clean.k, clean.v, {.causal = true});
    CHECK(same_bits(y.value().slice(2, 0, last + 1), expected.value().slice(2, 0, last + 1)));
    CHECK_FALSE(is_finite(y.value().slice(2, last + 1, last + 2)));
    y.backward(o.g);
    expected.backward(clean.g);
    CHECK(same_bits(o.q.grad().slice(2, 0, last + 1), clean.q.grad().slice(2, 0, last + 1)));

    // Padding: no query sees these keys, and they have gradient 0.
    for (const bool boolean : {true, false}) {
      const operands<float> p(s);
      const tensor seen = full<bool>({1, 1, 1, 80}, true);
      const tensor added = zeros<float>({1, 1, 1, 80});
      for (const index_t j : {3, 66, 79}) {
        seen.slice(3, j, j + 1) = false;
        added.slice(3, j, j + 1) = -std::numeric_limits<float>::infinity();
        for (const tensor<float, 4, g0>& t : {p.k.value(), p.v.value()}) t.slice(2, j, j + 1) = x;
      }
      plain::rules r{usual_scale(s.size)};
      r.seen = [](index_t, index_t, index_t, index_t j) { return j == 3 || j == 66 || j == 79 ? 0.0 : 1.0; };
      if (boolean) plain::compare(p, r, [&](const auto&... a) { return attention(a..., there(seen)); });
      else plain::compare(p, r, [&](const auto&... a) { return attention(a..., there(added)); });
    }
  }
}

TEST_CASE("attention of nothing is nothing on a GPU", "[cuda][attention]") {
  const tensor none =
      attention(zeros<float, g0>({2, 3, 0, 4}), zeros<float, g0>({2, 3, 5, 4}), zeros<float, g0>({2, 3, 5, 6}));
  CHECK(none.shape() == extents<4>{2, 3, 0, 6});
  const variable q = ones<float, g0>({1, 1, 3, 4}), k = ones<float, g0>({1, 1, 0, 4}),
                 v = ones<float, g0>({1, 1, 0, 2});
  const variable y = attention(q, k, v);  // no keys
  y.backward(ones<float, g0>({1, 1, 3, 2}));
  CHECK(largest(y.value()) == 0);
  CHECK(largest(q.grad()) == 0);
  const variable p = ones<float, g0>({1, 0, 4}), l = ones<float, g0>({1, 5, 4});
  variable(attention(p, l, l)).backward(zeros<float, g0>({1, 0, 4}));  // no queries
  CHECK(largest(l.grad()) == 0);
  const tensor means = attention(ones<float, g0>({1, 2, 0}), ones<float, g0>({1, 3, 0}), full<float, g0>({1, 3, 2}, 4));
  CHECK(largest(eval(means - 4)) < 1e-6);
  const variable u = ones<float, g0>({1, 30, 4}), valueless = attention(u, u, zeros<float, g0>({1, 30, 0}));
  valueless.backward(zeros<float, g0>({1, 30, 0}));
  CHECK(largest(u.grad()) == 0);
}

TEMPLATE_TEST_CASE("a formula of the scores is part of a GPU's kernels, with its derivative", "[cuda][attention]",
                   float, double, bfloat16) {
  const sizes s{2, 3, 3, 20, 90, 16, 8};
  plain::rules cap{usual_scale(s.size)};
  cap.score = [](double x) { return 2 * std::tanh(x / 2) + 0.5 * x; };
  cap.slope = [](double x) { return 1.5 - std::pow(std::tanh(x / 2), 2); };
  plain::compare(operands<TestType>(s), cap, [](const auto&... x) { return attention(x..., soft_cap()); });

  const by_distance alibi{{0.0625, 0.03125, 0.015625}};
  plain::rules far{usual_scale(s.size)};
  far.seen = plain::causal(s.queries, s.keys);
  far.bias = [&](index_t, index_t h, index_t i, index_t j) { return alibi.slopes[h] * static_cast<double>(j - i); };
  plain::compare(operands<TestType>(s), far,
                 [&](const auto&... x) { return attention(x..., alibi, {.causal = true}); });

  plain::rules window{usual_scale(s.size)};
  window.seen = [](index_t, index_t, index_t i, index_t j) { return j > i + 70 - 20 && j <= i + 70 ? 1.0 : 0.0; };
  plain::compare(operands<TestType>(s), window, [](const auto&... x) { return attention(x..., between{50, 70}); });
  plain::compare(operands<TestType>(s), window,
                 [](const auto&... x) { return attention(x..., sliding_window(19, 70)); });

  const tensor<bool, 2> even = empty<bool>({20, 90});
  for (index_t i = 0; i < even.numel(); ++i) even.data()[i] = i % 2 == 0;
  cap.seen = [&](index_t, index_t, index_t i, index_t j) { return even(i, j) ? 1.0 : 0.0; };
  plain::compare(operands<TestType>(s), cap,
                 [&](const auto&... x) { return attention(x..., there(even), soft_cap()); });
}

TEST_CASE("a formula and an added mask go together on a GPU", "[cuda][attention]") {
  const sizes s{1, 2, 2, 20, 70, 8, 8};
  generator gen(2);
  const tensor host = randn<double>(gen, {20, 70});
  const variable mask = there(host);
  plain::rules r{usual_scale(s.size)};
  r.score = [](double x) { return 2 * std::tanh(x / 2) + 0.5 * x; };
  r.slope = [](double x) { return 1.5 - std::pow(std::tanh(x / 2), 2); };
  r.bias = [&](index_t, index_t, index_t i, index_t j) { return host(i, j); };
  const operands<double> o(s);
  const plain::results expected = plain::expected_of(o, r);
  plain::compare(o, r, [&](const auto&... x) { return attention(x..., mask, soft_cap()); });
  plain::heads sum(1, 1, 20, 70);
  for (index_t h = 0; h < 2; ++h)
    for (index_t i = 0; i < 20; ++i)
      for (index_t j = 0; j < 70; ++j) sum(0, 0, i, j) += expected.scores(0, h, i, j);
  CHECK(distance(mask.grad().unsqueeze(0), sum) < 1e-11);
}

TEST_CASE("documents that follow each other do not see each other on a GPU", "[cuda][attention]") {
  const sizes s{1, 2, 2, 150, 150, 8, 8};
  plain::rules r{usual_scale(s.size)};
  r.seen = [](index_t, index_t, index_t i, index_t j) { return i / 37 == j / 37 ? 1.0 : 0.0; };
  plain::compare(operands<float>(s), r, [](const auto&... x) { return attention(x..., same_document(37, 150)); });
}

TEST_CASE("a GPU drops the weights that the cpu would drop, and the same in backward", "[cuda][attention]") {
  for (const sizes& s : {sizes{2, 3, 3, 37, 70, 16, 8}, sizes{1, 2, 1, 20, 41, 8, 8}}) {
    const double p = 0.25;
    generator gen(9), again(9);
    const operands<double> o(s);
    const tensor factors = eval(dropout(ones<double>({s.batch, s.heads, s.queries, s.keys}), p, again));
    plain::rules r{usual_scale(s.size)};
    r.factor = [&](index_t b, index_t h, index_t i, index_t j) { return factors(b, h, i, j); };
    plain::compare(o, r, [&](const auto&... x) { return attention(x..., {.dropout = p}, gen); });
    CHECK(gen.offset() == again.offset());

    const operands<double> m(s);
    const tensor mask = full<bool>({s.queries, s.keys}, true);
    mask.slice(1, 3, 5) = false;
    r.seen = [](index_t, index_t, index_t, index_t j) { return j == 3 || j == 4 ? 0.0 : 1.0; };
    generator third(9);
    plain::compare(m, r, [&](const auto&... x) { return attention(x..., there(mask), {.dropout = p}, third); });
  }
  const operands<float> o({2, 2, 2, 30, 30, 8, 8});
  generator gen(1);
  CHECK(same_bits(eval(attention(o.q, o.k, o.v, {}, gen)).value(), eval(attention(o.q, o.k, o.v)).value()));
  CHECK(largest(eval(attention(o.q, o.k, o.v, {.dropout = 1}, gen)).value()) == 0);
}

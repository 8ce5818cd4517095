// tests/kernels/attention.hpp: attention and its gradients by plain loops in double, for the tests on every device.
#pragma once

#include "../catch.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace plain {

using sinter::index_t;

/// A tensor (batch, heads, rows, columns) of doubles.
struct heads {
  index_t n, h, t, d;
  std::vector<double> x;
  heads(index_t batch, index_t count, index_t rows, index_t columns)
      : n(batch), h(count), t(rows), d(columns), x(static_cast<std::size_t>(n * h * t * d)) {}
  double& operator()(index_t b, index_t c, index_t i, index_t k) {
    return x[static_cast<std::size_t>(((b * h + c) * t + i) * d + k)];
  }
  double operator()(index_t b, index_t c, index_t i, index_t k) const { return const_cast<heads&>(*this)(b, c, i, k); }
};

/// Of a tensor of rank 3 or 4.
template <class Tensor>
heads copy_of(const Tensor& from) {
  const auto host = from.template to<sinter::cpu>();
  const auto x = sinter::eval(sinter::cast<double>(host)).contiguous();
  constexpr int r = Tensor::rank;
  heads to(x.shape()[0], r == 4 ? x.shape()[1] : 1, x.shape()[r - 2], x.shape()[r - 1]);
  for (index_t i = 0; i < x.numel(); ++i) to.x[static_cast<std::size_t>(i)] = x.data()[i];
  return to;
}

/// f(batch, head, query, key)
using of_score = std::function<double(index_t, index_t, index_t, index_t)>;
inline double one(index_t, index_t, index_t, index_t) { return 1; }
inline double zero(index_t, index_t, index_t, index_t) { return 0; }
inline double everything(index_t, index_t, index_t, index_t) { return 1; }

struct rules {
  double scale;
  of_score seen = everything;                     ///< not 0: the query sees the key
  of_score bias = zero;                           ///< added to scores
  of_score factor = one;                          ///< of weights: dropout
  std::function<double(double)> score = nullptr;  ///< made of a scaled score, before the bias
  std::function<double(double)> slope = nullptr;  ///< its derivative
};

struct results {
  heads y, dq, dk, dv, scores;  ///< scores: the gradients of what is added to them
};

inline results attention(const heads& q, const heads& k, const heads& v, const heads& g, const rules& r) {
  const auto at = [](index_t i) { return static_cast<std::size_t>(i); };
  results to{heads(q.n, q.h, q.t, v.d), heads(q.n, q.h, q.t, q.d), heads(k.n, k.h, k.t, k.d), heads(v.n, v.h, v.t, v.d),
             heads(q.n, q.h, q.t, k.t)};
  for (index_t b = 0; b < q.n; ++b)
    for (index_t h = 0; h < q.h; ++h)
      for (index_t i = 0; i < q.t; ++i) {
        const index_t of_keys = h / (q.h / k.h);
        std::vector<double> p(at(k.t)), raw(at(k.t));
        std::vector<bool> sees(at(k.t));
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (index_t j = 0; j < k.t; ++j) {
          sees[at(j)] = r.seen(b, h, i, j) != 0;
          if (!sees[at(j)]) continue;
          for (index_t c = 0; c < q.d; ++c) raw[at(j)] += q(b, h, i, c) * k(b, of_keys, j, c);
          raw[at(j)] *= r.scale;
          p[at(j)] = (r.score ? r.score(raw[at(j)]) : raw[at(j)]) + r.bias(b, h, i, j);
          if (p[at(j)] == -std::numeric_limits<double>::infinity()) sees[at(j)] = false;
          else most = std::max(most, p[at(j)]);
        }
        for (index_t j = 0; j < k.t; ++j) {
          p[at(j)] = sees[at(j)] ? std::exp(p[at(j)] - most) : 0;
          sum += p[at(j)];
        }
        if (sum == 0) continue;
        double mean = 0;
        for (index_t j = 0; j < k.t; ++j) {
          if (!sees[at(j)]) continue;
          p[at(j)] /= sum;
          const double z = r.factor(b, h, i, j);
          for (index_t c = 0; c < v.d; ++c) {
            to.y(b, h, i, c) += p[at(j)] * z * v(b, of_keys, j, c);
            to.dv(b, of_keys, j, c) += p[at(j)] * z * g(b, h, i, c);
          }
        }
        for (index_t c = 0; c < v.d; ++c) mean += g(b, h, i, c) * to.y(b, h, i, c);
        for (index_t j = 0; j < k.t; ++j) {
          if (!sees[at(j)]) continue;
          double dp = 0;
          for (index_t c = 0; c < v.d; ++c) dp += g(b, h, i, c) * v(b, of_keys, j, c);
          double ds = p[at(j)] * (dp * r.factor(b, h, i, j) - mean);
          to.scores(b, h, i, j) = ds;
          if (r.slope) ds *= r.slope(raw[at(j)]);
          for (index_t c = 0; c < q.d; ++c) {
            to.dq(b, h, i, c) += r.scale * ds * k(b, of_keys, j, c);
            to.dk(b, of_keys, j, c) += r.scale * ds * q(b, h, i, c);
          }
        }
      }
  return to;
}

/// Keys up to i + (keys - queries).
inline of_score causal(index_t queries, index_t keys) {
  return [=](index_t, index_t, index_t i, index_t j) { return j <= i + keys - queries ? 1.0 : 0.0; };
}

template <class T>
inline constexpr double tolerance = std::is_same_v<T, double>         ? 1e-12
                                    : std::is_same_v<T, float>        ? 3e-5
                                    : std::is_same_v<T, sinter::half> ? 4e-3
                                                                      : 3e-2;

/// The largest distance, relative to 1 and the expected values.
template <class Tensor>
double distance(const Tensor& got, const heads& expected) {
  const heads x = copy_of(got);
  REQUIRE(x.x.size() == expected.x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.x.size(); ++i) {
    const double apart = std::abs(x.x[i] - expected.x[i]) / (1 + std::abs(expected.x[i]));
    most = apart <= most ? most : apart;  // NaN is the most
  }
  return most;
}

struct sizes {
  index_t batch, heads, key_heads, queries, keys, size, value_size;
};
inline double usual_scale(index_t size) { return 1 / std::sqrt(static_cast<double>(size)); }

template <class T, sinter::device D = sinter::cpu>
struct operands {
  sinter::variable<T, 4, D> q, k, v;
  sinter::tensor<T, 4, D> g;

  explicit operands(const sizes& s, std::uint64_t seed = 3) : operands(s, sinter::generator(seed)) {}

 private:
  operands(const sizes& s, sinter::generator gen)
      : q(made(gen, s.batch, s.heads, s.queries, s.size)),
        k(made(gen, s.batch, s.key_heads, s.keys, s.size)),
        v(made(gen, s.batch, s.key_heads, s.keys, s.value_size)),
        g(made(gen, s.batch, s.heads, s.queries, s.value_size)) {}
  static sinter::tensor<T, 4, D> made(sinter::generator& gen, index_t n, index_t h, index_t t, index_t d) {
    const sinter::tensor host = sinter::eval(sinter::cast<T>(sinter::randn<float>(gen, {n, h, t, d})));
    return host.template to<D>();
  }
};

template <class T, sinter::device D>
results expected_of(const operands<T, D>& o, const rules& r) {
  return attention(copy_of(o.q.value()), copy_of(o.k.value()), copy_of(o.v.value()), copy_of(o.g), r);
}

/// Value and gradients of f(q, k, v) against plain loops.
template <class T, sinter::device D, class F>
void compare(const operands<T, D>& o, const rules& r, const F& f) {
  const results expected = expected_of(o, r);
  const sinter::variable y = f(o.q, o.k, o.v);
  y.backward(o.g);
  CHECK(distance(y.value(), expected.y) < tolerance<T>);
  CHECK(distance(o.q.grad(), expected.dq) < 3 * tolerance<T>);
  CHECK(distance(o.k.grad(), expected.dk) < 3 * tolerance<T>);
  CHECK(distance(o.v.grad(), expected.dv) < 3 * tolerance<T>);
}

}  // namespace plain

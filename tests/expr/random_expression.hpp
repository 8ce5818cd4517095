// tests/expr/random_expression.hpp: expressions as pairs, in terms of the library and of numbers, to be tried on random
// leaves.
#pragma once

#include "../ops/table.hpp"

namespace random_expression {

using op_table::index_t;
using op_table::values;

/// A tensor of some rank as numbers and as it lies in memory.
struct leaf {
  values memory;
  std::vector<index_t> shape, strides;
  index_t offset = 0;
};

/// One expression over three leaves of fixed ranks.
struct entry {
  const char* text;
  double (*formula)(double, double, double);
  int rank[3];
  bool tracked[3];
  values (*in_float)(const std::vector<leaf>&);
  values (*in_double)(const std::vector<leaf>&);
  /// Written through a view that lies in memory as `to` says; returns to's memory.
  values (*into)(const std::vector<leaf>&, const leaf& to);
  std::vector<values> (*gradients)(const std::vector<leaf>&, const values& seed);
};

template <class T, int R>
sinter::tensor<T, R> to_tensor(const leaf& l) {
  auto memory = sinter::tensor<T, 1>::uninitialized({{static_cast<index_t>(l.memory.size())}});
  for (std::size_t i = 0; i < l.memory.size(); ++i) memory.data()[i] = static_cast<T>(l.memory[i]);
  sinter::extents<R> shape, strides;
  for (int d = 0; d < R; ++d) {
    shape[d] = l.shape[static_cast<std::size_t>(d)];
    strides[d] = l.strides[static_cast<std::size_t>(d)];
  }
  using access = sinter::detail::access;
  return access::make<T, R, sinter::cpu>(access::storage_of(memory), memory.data() + l.offset, shape, strides);
}

template <class T, int R>
values to_values(const sinter::tensor<T, R>& t) {
  const auto rows = t.contiguous();
  return values(rows.begin(), rows.end());
}

template <class F, class T, int A, int B, int C>
values evaluate(const std::vector<leaf>& in) {
  return to_values(sinter::eval(F{}(to_tensor<T, A>(in[0]), to_tensor<T, B>(in[1]), to_tensor<T, C>(in[2]))));
}

template <class F, int A, int B, int C>
values evaluate_into(const std::vector<leaf>& in, const leaf& to) {
  const auto e = F{}(to_tensor<double, A>(in[0]), to_tensor<double, B>(in[1]), to_tensor<double, C>(in[2]));
  sinter::tensor<double, 1> memory =
      to_tensor<double, 1>({to.memory, {static_cast<index_t>(to.memory.size())}, {1}, 0});
  sinter::extents<e.rank> shape, strides;
  for (int d = 0; d < e.rank; ++d) {
    shape[d] = to.shape[static_cast<std::size_t>(d)];
    strides[d] = to.strides[static_cast<std::size_t>(d)];
  }
  using access = sinter::detail::access;
  access::make<double, e.rank, sinter::cpu>(access::storage_of(memory), memory.data() + to.offset, shape, strides) = e;
  return to_values(memory);
}

template <class F, int A, int B, int C, bool TrackB>
std::vector<values> gradients(const std::vector<leaf>& in, const values& seed) {
  sinter::variable<double, A> a = to_tensor<double, A>(in[0]);
  std::conditional_t<TrackB, sinter::variable<double, B>, sinter::tensor<double, B>> b = to_tensor<double, B>(in[1]);
  sinter::variable<double, C> c = to_tensor<double, C>(in[2]);
  const auto y = sinter::eval(F{}(a, b, c));
  auto g = sinter::tensor<double, y.rank>::uninitialized(y.shape());
  for (std::size_t i = 0; i < seed.size(); ++i) g.data()[i] = seed[i];
  y.backward(g);
  std::vector<values> result(3);
  if (a.has_grad()) result[0] = to_values(a.grad());
  if constexpr (TrackB) {
    if (b.has_grad()) result[1] = to_values(b.grad());
  }
  if (c.has_grad()) result[2] = to_values(c.grad());
  return result;
}

template <class F, int A, int B, int C, bool TrackB>
entry make_entry(const char* text, double (*formula)(double, double, double)) {
  return {text,
          formula,
          {A, B, C},
          {true, TrackB, true},
          &evaluate<F, float, A, B, C>,
          &evaluate<F, double, A, B, C>,
          &evaluate_into<F, A, B, C>,
          &gradients<F, A, B, C, TrackB>};
}

template <class F>
void append(std::vector<entry>& entries, const char* text, F, double (*formula)(double, double, double)) {
  entries.push_back(make_entry<F, 3, 2, 1, true>(text, formula));
  entries.push_back(make_entry<F, 2, 4, 0, false>(text, formula));
}

inline constexpr int parts = 4;
void append_part_0(std::vector<entry>& entries);
void append_part_1(std::vector<entry>& entries);
void append_part_2(std::vector<entry>& entries);
void append_part_3(std::vector<entry>& entries);

#define PAIR(expression, number)                                                                      \
  if constexpr ((__COUNTER__ - first) % parts == Part)                                                \
    append(                                                                                           \
        entries, #expression, [](const auto& a, const auto& b, const auto& c) { return expression; }, \
        [](double a, double b, double c) -> double { return number; });

template <int Part>
void append_entries(std::vector<entry>& entries) {
  using namespace op_table;
  constexpr int first = __COUNTER__ + 1;
  // clang-format off
  PAIR(a + b * c, a + b * c)
  PAIR(sigmoid(a * b + c) * tanh(a), logistic(a * b + c) * std::tanh(a))
  PAIR((a - b) / (2 + c * c), (a - b) / (2 + c * c))
  PAIR(exp(-a * a / 2) * b + c, std::exp(-a * a / 2) * b + c)
  PAIR(where(a > b, a * c, b - c), a > b ? a * c : b - c)
  PAIR(maximum(a, b) * minimum(b, c), std::max(a, b) * std::min(b, c))
  PAIR(relu(a) - relu(-b) + gelu(c), std::max(a, 0.) - std::max(-b, 0.) + c / 2 * (1 + std::erf(c * std::sqrt(0.5))))
  PAIR(pow(sigmoid(a) + 1.5, b) + c, std::pow(logistic(a) + 1.5, b) + c)
  PAIR(sqrt(1 + a * a + b * b) * c, std::sqrt(1 + a * a + b * b) * c)
  PAIR(log1p(exp(a)) - softplus(b) * c, std::log1p(std::exp(a)) - log_one_plus_exp(b) * c)
  PAIR(clamp(a * b, -1, c), std::min(std::max(a * b, -1.), c))
  PAIR(lerp(a, b, sigmoid(c)), a + (b - a) * logistic(c))
  PAIR(1 - a / 2 + 3 * b - c, 1 - a / 2 + 3 * b - c)
  PAIR(sin(a) * cos(b) + sin(a) * cos(c), std::sin(a) * std::cos(b) + std::sin(a) * std::cos(c))
  PAIR(atan2(a, 3 + tanh(b)) * hypot(c, 1), std::atan2(a, 3 + std::tanh(b)) * std::hypot(c, 1))
  PAIR(a * a * a + a * b - c, a * a * a + a * b - c)
  PAIR(where(a > 0 && !(b < c), exp(a), c * b), a > 0 && !(b < c) ? std::exp(a) : c * b)
  PAIR(abs(a) * sign(b) + square(c), std::fabs(a) * sign_of(b) + c * c)
  PAIR(elu(a) * silu(b) + leaky_relu(c, 0.1), (a > 0 ? a : std::expm1(a)) * b * logistic(b) + (c > 0 ? c : 0.1 * c))
  PAIR(fma(a, b, fma(b, c, a)), a * b + b * c + a)
  PAIR(a + (b + (c + (a + (b + c)))), 2 * (a + b + c))
  PAIR(((a * b + c) * b + a) * 0.5, ((a * b + c) * b + a) / 2)
  PAIR(where(isnan(a / b), b, c) * a, (std::isnan(a / b) ? b : c) * a)
  PAIR(erf(a) + expm1(b / 2) * log1p(c * c), std::erf(a) + std::expm1(b / 2) * std::log1p(c * c))
  PAIR(remainder(a, 2) * b + c, modulo(a, 2) * b + c)
  PAIR(rsqrt(1 + square(a)) * reciprocal(2 + sigmoid(b)) - c, 1 / std::sqrt(1 + a * a) / (2 + logistic(b)) - c)
  PAIR(hardswish(a) + hardsigmoid(b) * softsign(c), a * limited(a + 3, 0, 6) / 6 + limited(b / 6 + 0.5, 0, 1) * c / (1 + std::fabs(c)))
  PAIR(where(a > b, 1, 0 * c) * c - a + b, (a > b ? c : 0) - a + b)
  // clang-format on
}

#undef PAIR

}  // namespace random_expression

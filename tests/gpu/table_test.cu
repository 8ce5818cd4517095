// tests/gpu/table_test.cu: every row of the op table, device against device: values, gradients, extremes, strides.
#include "../ops/checks.hpp"

using namespace op_table;

namespace {

/// A GPU rounds a * b + c once, and its functions are not the host's.
constexpr double slack = 4;

double allowed(type t, double tolerance) {
  return slack * (is_real(t) ? tolerance * epsilon_of(t) / epsilon_of(type::f32) : 0);
}

operands turned(operands in) {
  for (operand& o : in) {
    std::swap(o.shape[0], o.shape[2]);
    std::swap(o.strides[0], o.strides[2]);
  }
  return in;
}

/// The last operand is one number for each line.
operands broadcast(operands in) {
  operand& last = in.back();
  last.shape[2] = 1;
  return in;
}

void compare_values(const row& r, const functions& f, const operands& in) {
  INFO(r.name << " on " << name_of(f.element) << ", values");
  check_close(f.evaluate_elsewhere(in), f.evaluate(in), allowed(f.element, r.tolerance), 1 + r.scale, in);
}

void compare_gradients(const row& r, const functions& f, const operands& in) {
  if (f.gradients_elsewhere == nullptr) return;
  INFO(r.name << " on " << name_of(f.element) << ", gradients");
  std::mt19937 random(3);
  index_t n = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    index_t extent = 1;
    for (const operand& o : in) extent = std::max(extent, o.shape[d]);
    n *= extent;
  }
  const values seed = random_values(random, f.element, between(-1, 1), static_cast<std::size_t>(n));
  const auto here = f.gradients(in, seed), there = f.gradients_elsewhere(in, seed);
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    INFO("operand " << i);
    const double terms = static_cast<double>(n) / static_cast<double>(std::max<std::size_t>(1, here[i].size()));
    check_close(there[i], here[i], allowed(f.element, r.gradient_tolerance), 1 + terms, in);
  }
}

}  // namespace

TEST_CASE("every op gives on the other device what it gives on the host", "[table]") {
  for (const row& r : table())
    for (const functions& f : r.types) {
      if (f.evaluate_elsewhere == nullptr) continue;
      for (const std::array<index_t, 3>& shape :
           {std::array<index_t, 3>{1, 1, 1}, {2, 3, 5}, {3, 7, 33}, {1, 2, 4099}}) {
        const operands in = random_operands(r, f.element, shape);
        compare_values(r, f, in);
        compare_gradients(r, f, in);
      }
      const operands in = random_operands(r, f.element, {6, 5, 7}, 2);
      compare_values(r, f, turned(in));
      compare_gradients(r, f, turned(in));
      if (r.arity == 1) continue;
      compare_values(r, f, broadcast(in));
      compare_gradients(r, f, broadcast(in));
    }
}

TEST_CASE("every op gives on the other device what it gives on the host where numbers end", "[table]") {
  const double inf = INFINITY, nan = std::nan("");
  const values corners{0, -0.0, 1, -1, 0.5, 1e4, -1e4, 1e-40, inf, -inf, nan};
  const auto n = static_cast<index_t>(corners.size());
  for (const row& r : table()) {
    const functions* const f = r.on(type::f32);
    if (f == nullptr || f->evaluate_elsewhere == nullptr || !r.extremes || f->gives_mask) continue;
    operands in;
    for (int i = 0; i < r.arity; ++i) {
      operand o = dense({n, n, n}, values(static_cast<std::size_t>(n * n * n)));
      for (std::size_t e = 0, step = i == 0   ? 1
                                     : i == 1 ? corners.size()
                                              : corners.size() * corners.size();
           e < o.memory.size(); ++e)
        o.memory[e] = rounded(type::f32, corners[e / step % corners.size()]);
      in.push_back(o);
    }
    compare_values(r, *f, in);
  }
}

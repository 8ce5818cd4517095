// tests/ops/table_test.cpp: what every row of the op table must satisfy.
#include <cstring>
#include <set>

#include "checks.hpp"

using namespace op_table;

namespace {

/// How the op calls itself in messages: "pow 2" is a use of "pow".
std::string op_name(const row& r) {
  if (r.name == "2 pow") return "pow";
  return r.name.substr(0, r.name.find(' '));
}

}  // namespace

TEST_CASE("the op table has each name once and every op on some element type") {
  std::set<std::string> names;
  for (const row& r : table()) {
    CHECK(names.insert(r.name).second);
    CHECK(!r.types.empty());
  }
  CHECK(names.size() >= 90);
}

TEST_CASE("ops give the values of their formulas in double on every element type they accept") {
  for (const row& r : table())
    for (const functions& f : r.types) {
      INFO(r.name << " on " << name_of(f.element));
      const operands in = random_operands(r, f.element, {3, 17, 41});
      values expected = expected_values(r, f, in);
      if (is_real(f.element)) {
        const double tolerance = r.tolerance * (f.element == type::f64 ? 1e-8 : 1);
        check_close(f.evaluate(in), expected, f.gives_mask ? 0 : tolerance, r.scale, in);
      } else {
        const bool converts = r.name.rfind("cast", 0) == 0;
        for (double& x : expected)
          if (!f.gives_mask && !converts) x = rounded(f.element, x);
        check_equal(f.evaluate(in), expected, in);
      }
    }
}

TEST_CASE("derivatives of ops agree with central differences in double for every operand") {
  for (const row& r : table()) {
    const functions* f = r.on(type::f64);
    if (f == nullptr || f->gradients == nullptr) continue;
    INFO(r.name);
    const operands in = random_operands(r, type::f64, {4, 5, 13}, 2);
    const std::size_t n = count(in[0].shape);
    std::mt19937 random(3);
    const values seed = random_values(random, type::f64, {-2, 2}, n);
    const std::vector<values> got = f->gradients(in, seed);
    for (int i = 0; i < r.arity; ++i) {
      INFO("operand " << i);
      values difference;
      for (std::size_t e = 0; e < n; ++e) {
        double v[3] = {};
        for (int k = 0; k < r.arity; ++k) v[k] = in[static_cast<std::size_t>(k)].memory[e];
        const double x = v[i], h = 1e-5;
        v[i] = x + h;
        const double above = r.reference(v);
        v[i] = x - h;
        const double below = r.reference(v);
        difference.push_back(seed[e] * (above - below) / (2 * h));
      }
      const values& g = got[static_cast<std::size_t>(i)];
      check_close(g.empty() ? values(n) : g, difference, 1e-7, 1, in);
    }
  }
}

TEST_CASE("second derivatives of ops agree with central differences of the first") {
  for (const row& r : table()) {
    const functions* f = r.on(type::f64);
    if (f == nullptr || f->second_order == nullptr) continue;
    const operands in = random_operands(r, type::f64, {2, 3, 13}, 14);
    const std::size_t n = count(in[0].shape);
    std::mt19937 random(15);
    const values seed = random_values(random, type::f64, {-2, 2}, n);
    for (int which = 0; which < r.arity; ++which) {
      const auto got = f->second_order(in, seed, which);
      for (std::size_t i = 0; i < in.size(); ++i) {
        INFO(r.name << ", derivative to operand " << which << ", then to operand " << i);
        const auto moved = [&](double by) {
          operands shifted = in;
          for (double& x : shifted[i].memory) x += by;
          const values g = f->gradients(shifted, seed)[static_cast<std::size_t>(which)];
          return g.empty() ? values(n) : g;
        };
        const double h = 1e-5;
        const values above = moved(h), below = moved(-h);
        values difference;
        for (std::size_t e = 0; e < n; ++e) difference.push_back((above[e] - below[e]) / (2 * h));
        check_close(got[i].empty() ? values(n) : got[i], difference, 1e-6, 1, in);
      }
    }
  }
}

TEST_CASE("float derivatives of ops agree with those in double") {
  for (const row& r : table()) {
    const functions* f = r.on(type::f32);
    const functions* d = r.on(type::f64);
    if (f == nullptr || d == nullptr || f->gradients == nullptr || d->gradients == nullptr) continue;
    INFO(r.name);
    const operands in = random_operands(r, type::f32, {4, 5, 13}, 4);
    std::mt19937 random(5);
    const values seed = random_values(random, type::f32, {-2, 2}, count(in[0].shape));
    const auto got = f->gradients(in, seed), expected = d->gradients(in, seed);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("operand " << i);
      check_close(got[i], expected[i], r.gradient_tolerance, 1, in);
    }
  }
}

TEST_CASE("vector words and scalar words give the same values and derivatives") {
  for (const row& r : table())
    for (const functions& f : r.types) {
      INFO(r.name << " on " << name_of(f.element));
      const operands in = random_operands(r, f.element, {2, 7, 19}, 6);
      const double tolerance = is_real(f.element) ? 8 * epsilon_of(f.element) : 0;
      check_close(f.evaluate(in), f.by_scalar(in), f.gives_mask ? 0 : tolerance, r.scale, in);
      if (f.gradients == nullptr) continue;
      std::mt19937 random(7);
      const values seed = random_values(random, f.element, {-2, 2}, count(in[0].shape));
      const auto vector = f.gradients(in, seed), scalar = f.gradients_by_scalar(in, seed);
      const double wider = f.element == type::f32 ? r.gradient_tolerance : 1e-14;
      for (std::size_t i = 0; i < vector.size(); ++i)
        check_close(vector[i].empty() ? values(seed.size()) : vector[i], scalar[i], wider, 1, in);
    }
}

TEST_CASE("ops follow their formulas at zeros, infinities, NaN, denormals and large numbers") {
  const double inf = std::numeric_limits<double>::infinity();
  const values special = {0., -0., 1e-40, -1e-40, 1e-10, 1., -1., 0.5, 2., 1e4, -1e4, inf, -inf, std::nan("")};
  for (const row& r : table())
    for (const type t : {type::f32, type::f64}) {
      const functions* f = r.on(t);
      if (f == nullptr || !r.extremes) continue;
      INFO(r.name << " on " << name_of(t));
      const auto n = static_cast<index_t>(special.size());
      const std::array<index_t, 3> shape = {r.arity > 2 ? n : 1, r.arity > 1 ? n : 1, n};
      operands in;
      for (int i = 0; i < r.arity; ++i) {
        operand o = dense(shape, values(count(shape)));
        index_t each = i == 0 ? 1 : i == 1 ? n : n * n;
        for (std::size_t e = 0; e < o.memory.size(); ++e)
          o.memory[e] = rounded(t, special[static_cast<std::size_t>(static_cast<index_t>(e) / each % n)]);
        in.push_back(o);
      }
      values expected = expected_values(r, *f, in);
      const bool converts = r.name.rfind("cast", 0) == 0;
      for (double& x : expected) x = f->gives_mask || converts ? x : rounded(t, x);
      const double least = t == type::f32 ? 1.2e-38 : 2.3e-308;
      for (const values& got : {f->evaluate(in), f->by_scalar(in)}) {
        for (std::size_t e = 0; e < got.size(); ++e) {
          const double error = std::fabs(got[e] - expected[e]);
          if (same(got[e], expected[e]) ||
              error <= 8 * epsilon_of(t) * (std::fabs(expected[e]) + (std::isfinite(expected[e]) ? r.scale : 0)) ||
              error <= least)
            continue;
          INFO(at(in, e) << ": " << got[e] << " instead of " << expected[e]);
          FAIL_CHECK("differs");
          break;
        }
      }
    }
}

TEST_CASE("ops name themselves when shapes do not broadcast or an operand is empty") {
  for (const row& r : table()) {
    INFO(r.name);
    const functions& f = r.types.front();
    CHECK_THROWS_AS(f.evaluate_empty(), sinter::shape_error);
    CHECK_THROWS_WITH(f.evaluate_empty(),
                      Catch::Contains(op_name(r) == "where" ? "greater" : op_name(r)) && Catch::Contains("empty"));
    for (int odd = 0; r.arity > 1 && odd < r.arity; ++odd) {
      operands in = random_operands(r, f.element, {2, 3, 4});
      in[static_cast<std::size_t>(odd)] = random_operands(r, f.element, {2, 3, 5})[static_cast<std::size_t>(odd)];
      CHECK_THROWS_AS(f.evaluate(in), sinter::shape_error);
      const bool in_mask = op_name(r) == "where" && odd == 0;
      CHECK_THROWS_WITH(f.evaluate(in), Catch::Contains(in_mask                             ? "greater"
                                                        : op_name(r) == "where" && odd == 1 ? ""
                                                                                            : op_name(r)) &&
                                            Catch::Contains("(2, 3, 4)") && Catch::Contains("(2, 3, 5)"));
    }
  }
}

TEST_CASE("ops on tensors without elements give tensors without elements") {
  for (const row& r : table())
    for (const functions& f : r.types) {
      INFO(r.name << " on " << name_of(f.element));
      CHECK(f.evaluate(random_operands(r, f.element, {3, 0, 4})).empty());
      if (f.gradients == nullptr) continue;
      for (const values& g : f.gradients(random_operands(r, f.element, {3, 0, 4}), {})) CHECK(g.empty());
    }
}

TEST_CASE("ops give the same bits with 1, 2 and 3 threads") {
  const int before = sinter::num_threads();
  for (const row& r : table()) {
    const functions& f = r.types.front();
    INFO(r.name);
    operands in = random_operands(r, f.element, {3, 67, 641}, 8);
    if (r.arity > 1) in[1] = random_operands(r, f.element, {1, 67, 1}, 9)[1];
    std::mt19937 random(10);
    const values seed = random_values(random, type::f32, {-2, 2}, count(in[0].shape));
    values first;
    std::vector<values> first_gradients;
    for (int threads = 1; threads <= 3; ++threads) {
      sinter::set_num_threads(threads);
      const values got = f.evaluate(in);
      const auto gradients = f.gradients ? f.gradients(in, seed) : std::vector<values>();
      if (threads == 1) {
        first = got;
        first_gradients = gradients;
      } else {
        REQUIRE(got.size() == first.size());
        CHECK(std::memcmp(got.data(), first.data(), got.size() * sizeof(double)) == 0);
        for (std::size_t i = 0; i < gradients.size(); ++i) {
          REQUIRE(gradients[i].size() == first_gradients[i].size());
          CHECK((gradients[i].empty() || std::memcmp(gradients[i].data(), first_gradients[i].data(),
                                                     gradients[i].size() * sizeof(double)) == 0));
        }
      }
    }
  }
  sinter::set_num_threads(before);
}

namespace {

struct layout {
  const char* name;
  operand (*make)(std::mt19937&, type, interval, const std::array<index_t, 3>&);
};

/// Operands of one shape that lie in memory in different ways.
const layout layouts[] = {
    {"transposed",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{random_values(random, t, range, count(s)), s, {1, s[0] * s[2], s[0]}, 0};
     }},
    {"every second element",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{random_values(random, t, range, 2 * count(s)), s, {2 * s[1] * s[2], 2 * s[2], 2}, 1};
     }},
    {"sliced",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       const index_t row = s[2] + 3, plane = (s[1] + 2) * row;
       return operand{random_values(random, t, range, static_cast<std::size_t>((s[0] + 1) * plane)),
                      s,
                      {plane, row, 1},
                      plane + row + 2};
     }},
    {"flipped",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{random_values(random, t, range, count(s)), s, {s[1] * s[2], -s[2], -1}, s[1] * s[2] - 1};
     }},
    {"broadcast row",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{
           random_values(random, t, range, static_cast<std::size_t>(s[2])), {1, 1, s[2]}, {s[2], s[2], 1}, 0};
     }},
    {"broadcast column",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{
           random_values(random, t, range, static_cast<std::size_t>(s[0] * s[1])), {s[0], s[1], 1}, {s[1], 1, 1}, 0};
     }},
    {"scalar",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>&) {
       return operand{random_values(random, t, range, 1), {1, 1, 1}, {1, 1, 1}, 0};
     }},
    {"repeated by strides of 0",
     [](std::mt19937& random, type t, interval range, const std::array<index_t, 3>& s) {
       return operand{random_values(random, t, range, static_cast<std::size_t>(s[1])), s, {0, 1, 0}, 0};
     }},
};

/// The same operand, dense and of the full shape.
operand spread(const operand& o, const std::array<index_t, 3>& shape) {
  values v;
  for (index_t i = 0; i < shape[0]; ++i)
    for (index_t j = 0; j < shape[1]; ++j)
      for (index_t k = 0; k < shape[2]; ++k)
        v.push_back(o.at(o.shape[0] == 1 ? 0 : i, o.shape[1] == 1 ? 0 : j, o.shape[2] == 1 ? 0 : k));
  return dense(shape, v);
}

/// A gradient of the full shape, summed over the axes that o repeats.
values summed(const operand& o, const values& g, const std::array<index_t, 3>& shape) {
  values sum(static_cast<std::size_t>(o.numel()));
  std::size_t e = 0;
  for (index_t i = 0; i < shape[0]; ++i)
    for (index_t j = 0; j < shape[1]; ++j)
      for (index_t k = 0; k < shape[2]; ++k) {
        const index_t a = o.shape[0] == 1 ? 0 : i, b = o.shape[1] == 1 ? 0 : j, c = o.shape[2] == 1 ? 0 : k;
        sum[static_cast<std::size_t>((a * o.shape[1] + b) * o.shape[2] + c)] += g[e++];
      }
  return sum;
}

}  // namespace

TEST_CASE("ops read operands in any layout") {
  const std::array<index_t, 3> shape = {3, 5, 21};
  for (const row& r : table())
    for (const functions& f : r.types) {
      if (f.element == type::i16 || f.element == type::i64) continue;  // as wide as others that are tested
      for (const layout& l : layouts)
        for (int which = 0; which <= (r.arity > 1 ? r.arity : 0); ++which) {  // one operand, or all of them
          INFO(r.name << " on " << name_of(f.element) << ", " << l.name << " operand " << which);
          std::mt19937 random(11);
          operands in = random_operands(r, f.element, shape, 12);
          for (int i = 0; i < r.arity; ++i)
            if (which == i || which == r.arity)
              in[static_cast<std::size_t>(i)] = l.make(random, f.element, r.domain[static_cast<std::size_t>(i)], shape);
          if (r.name == "shift_left")
            for (operand& o : in)
              for (double& x : o.memory) x = std::fabs(x);
          std::array<index_t, 3> full = {1, 1, 1};
          for (const operand& o : in)
            for (std::size_t d = 0; d < 3; ++d) full[d] = std::max(full[d], o.shape[d]);
          operands plain;
          for (const operand& o : in) plain.push_back(spread(o, full));
          check_equal(f.evaluate(in), f.evaluate(plain), plain);
          if (f.element != type::f64 || f.gradients == nullptr) continue;
          const values seed = random_values(random, type::f64, {-2, 2}, count(full));
          const auto got = f.gradients(in, seed), expected = f.gradients(plain, seed);
          for (std::size_t i = 0; i < in.size(); ++i)
            if (!got[i].empty()) check_close(got[i], summed(in[i], expected[i], full), 1e-12, 100, plain);
        }
    }
}

TEST_CASE("ops give the same bits on a NUMA device") {
  for (const row& r : table())
    for (const functions& f : r.types) {
      if (f.evaluate_elsewhere == nullptr) continue;
      INFO(r.name << " on " << name_of(f.element));
      const operands in = random_operands(r, f.element, {3, 17, 41}, 13);
      check_equal(f.evaluate_elsewhere(in), f.evaluate(in), in);
    }
}

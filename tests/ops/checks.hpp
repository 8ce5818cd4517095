// tests/ops/checks.hpp: operands for the op table, and what is compared.
#pragma once

#include <random>

#include "../catch.hpp"
#include "table.hpp"

namespace op_table {

inline bool is_real(type t) { return t == type::f32 || t == type::f64; }
inline double epsilon_of(type t) { return t == type::f32 ? 1.2e-7 : 2.3e-16; }

inline const char* name_of(type t) {
  const char* names[] = {"float", "double", "int8", "int16", "int32", "int64", "uint8", "bool"};
  return names[static_cast<int>(t)];
}

/// x as an element of type t holds it; integers wrap.
inline double rounded(type t, double x) {
  switch (t) {
    case type::f32:
      return static_cast<double>(static_cast<float>(x));
    case type::f64:
      return x;
    case type::i8:
      return static_cast<double>(static_cast<std::int8_t>(whole(x)));
    case type::i16:
      return static_cast<double>(static_cast<std::int16_t>(whole(x)));
    case type::i32:
      return static_cast<double>(static_cast<std::int32_t>(whole(x)));
    case type::i64:
      return static_cast<double>(whole(x));
    case type::u8:
      return static_cast<double>(static_cast<std::uint8_t>(whole(x)));
    case type::boolean:
      return x != 0;
  }
  return x;
}

inline std::size_t count(const std::array<index_t, 3>& shape) {
  return static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
}

inline operand dense(const std::array<index_t, 3>& shape, values memory) {
  return {std::move(memory), shape, {shape[1] * shape[2], shape[2], 1}, 0};
}

inline values random_values(std::mt19937& random, type t, interval range, std::size_t n) {
  values v(n);
  for (double& x : v) {
    if (is_real(t)) x = rounded(t, std::uniform_real_distribution<double>(range.low, range.high)(random));
    else if (t == type::boolean) x = static_cast<double>(random() % 2);
    else x = static_cast<double>(random() % 13) - (t == type::u8 ? 0 : 6);
  }
  return v;
}

inline operands random_operands(const row& r, type t, const std::array<index_t, 3>& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  operands in;
  for (int i = 0; i < r.arity; ++i) {
    in.push_back(dense(shape, random_values(random, t, r.domain[static_cast<std::size_t>(i)], count(shape))));
    if (r.name == "shift_left" && i == 1 && t != type::u8)  // so that the product stays exact in double
      for (double& x : in.back().memory) x = std::fabs(x);
  }
  return in;
}

inline double reference(const row& r, const functions& f, const values& v) {
  double three[3] = {};
  std::copy(v.begin(), v.end(), three);
  if (!is_real(f.element) && r.reference_on_integers != nullptr)
    return r.reference_on_integers(three[0], three[1], three[2]);
  return r.reference(three);
}

inline values expected_values(const row& r, const functions& f, const operands& in) {
  values expected;
  for (std::size_t e = 0; e < count(in[0].shape); ++e) {
    values v;
    for (const operand& o : in) v.push_back(o.memory[e]);
    expected.push_back(reference(r, f, v));
  }
  return expected;
}

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

inline std::string at(const operands& in, std::size_t e) {
  std::string text = "at (";
  for (const operand& o : in)
    text += Catch::Detail::stringify(o.memory[e % o.memory.size()]) + (&o == &in.back() ? ")" : ", ");
  return text;
}

/// Every element equal or within tolerance |expected| + tolerance scale.
inline void check_close(const values& got, const values& expected, double tolerance, double scale, const operands& in) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t e = 0; e < got.size(); ++e) {
    if (same(got[e], expected[e]) || std::fabs(got[e] - expected[e]) <= tolerance * (std::fabs(expected[e]) + scale))
      continue;
    INFO(at(in, e) << ": " << got[e] << " instead of " << expected[e]);
    FAIL_CHECK("differs");
    return;
  }
  CHECK(got.size() == expected.size());
}

inline void check_equal(const values& got, const values& expected, const operands& in) {
  check_close(got, expected, 0, 0, in);
}

}  // namespace op_table

// tests/ops/table.hpp: the op table, one row per elementwise op. A row names the op, gives it in terms of the library
// and in double, and where it needs to: the operands' intervals and the accuracy of float. From it follow the tests of
// table_test.cpp. Rows are dealt out over the files table_<k>_test.cpp by themselves.
#pragma once

#include <algorithm>
#include <limits>

#include "row.hpp"

namespace op_table {

inline constexpr int parts = 14;

/// Appends the rows of one part.
void append_part_0(std::vector<row>& rows);
void append_part_1(std::vector<row>& rows);
void append_part_2(std::vector<row>& rows);
void append_part_3(std::vector<row>& rows);
void append_part_4(std::vector<row>& rows);
void append_part_5(std::vector<row>& rows);
void append_part_6(std::vector<row>& rows);
void append_part_7(std::vector<row>& rows);
void append_part_8(std::vector<row>& rows);
void append_part_9(std::vector<row>& rows);
void append_part_10(std::vector<row>& rows);
void append_part_11(std::vector<row>& rows);
void append_part_12(std::vector<row>& rows);
void append_part_13(std::vector<row>& rows);

/// All rows, by name.
inline const std::vector<row>& table() {
  static const std::vector<row> rows = [] {
    std::vector<row> r;
    append_part_0(r);
    append_part_1(r);
    append_part_2(r);
    append_part_3(r);
    append_part_4(r);
    append_part_5(r);
    append_part_6(r);
    append_part_7(r);
    append_part_8(r);
    append_part_9(r);
    append_part_10(r);
    append_part_11(r);
    append_part_12(r);
    append_part_13(r);
    std::sort(r.begin(), r.end(), [](const row& a, const row& b) { return a.name < b.name; });
    return r;
  }();
  return rows;
}

// Formulas in double that std does not have.
inline double nan_or(double x, double y) { return std::isnan(x) ? x : y; }
inline double larger(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::max(x, y); }
inline double smaller(double x, double y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::min(x, y); }
inline double limited(double x, double low, double high) { return smaller(larger(x, low), high); }
inline double logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
inline double log_one_plus_exp(double x) { return larger(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
inline double sign_of(double x) { return nan_or(x, (x > 0) - (x < 0)); }
inline double modulo(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
// As Python's //: x / y itself may round up to the next whole number.
inline double floored_quotient(double x, double y) {
  if (y == 0) return x / y;
  const double rest = std::fmod(x, y);
  return std::nearbyint((x - rest) / y - (rest != 0 && (rest < 0) != (y < 0)));
}
inline double truncated_quotient(double x, double y, double) { return y == 0 ? 0 : std::trunc(x / y); }
inline double whole_power(double x, double y, double) { return std::trunc(x == 0 && y < 0 ? 0 : std::pow(x, y)); }
inline double sine_of_pi_times(double x) { return std::sin(M_PI * (x - 2 * std::nearbyint(x / 2))); }
inline std::int64_t whole(double x) { return static_cast<std::int64_t>(x); }

// No uint8 is -1.
template <class X>
  requires(!std::is_same_v<sinter::element_of<X>, std::uint8_t>)
auto reciprocal_power(const X& x) -> decltype(pow(x, -1)) {
  return pow(x, -1);
}

#define OP_ROW(arity, name, parameters, arguments, formula, reference, ...)                               \
  if constexpr ((__COUNTER__ - first_row) % parts == Part)                                                \
    rows.push_back(make_row<arity>(                                                                       \
        name, [] parameters -> decltype(formula) { return formula; }, [] arguments { return reference; }, \
        options{__VA_ARGS__}));
#define ROW1(name, formula, reference, ...) \
  OP_ROW(1, name, ([[maybe_unused]] const auto& x), (double x), formula, reference, __VA_ARGS__)
#define ROW2(name, formula, reference, ...) \
  OP_ROW(2, name, (const auto& x, const auto& y), (double x, double y), formula, reference, __VA_ARGS__)
#define ROW3(name, formula, reference, ...)                                                                          \
  OP_ROW(3, name, (const auto& x, const auto& y, const auto& z), (double x, double y, double z), formula, reference, \
         __VA_ARGS__)

template <int Part>
void append_rows(std::vector<row>& rows) {
  constexpr int first_row = __COUNTER__ + 1;
  // clang-format off
  ROW2("add", x + y, x + y, .scale = 4)
  ROW2("subtract", x - y, x - y, .scale = 4)
  ROW2("multiply", x * y, x * y)
  ROW2("divide", x / y, x / y, .y = {0.5, 4}, .on_integers = truncated_quotient)
  ROW1("negate", -x, -x)
  ROW1("abs", abs(x), std::fabs(x))
  ROW1("sign", sign(x), sign_of(x))
  ROW1("square", square(x), x * x)
  ROW1("sqrt", sqrt(x), std::sqrt(x), .x = {0.01, 9})
  ROW1("rsqrt", rsqrt(x), 1 / std::sqrt(x), .x = {0.1, 9}, .gradient_tolerance = 1e-5)
  ROW1("reciprocal", reciprocal(x), 1 / x, .x = {0.3, 9})
  ROW1("cbrt", cbrt(x), std::cbrt(x), .x = {0.1, 9})
  ROW1("exp", exp(x), std::exp(x), .x = {-9, 9}, .gradient_tolerance = 4e-6)
  ROW1("exp2", exp2(x), std::exp2(x), .x = {-9, 9}, .gradient_tolerance = 4e-6)
  ROW1("expm1", expm1(x), std::expm1(x))
  ROW1("log", log(x), std::log(x), .x = {0.1, 9})
  ROW1("log2", log2(x), std::log2(x), .x = {0.1, 9})
  ROW1("log10", log10(x), std::log10(x), .x = {0.1, 9})
  ROW1("log1p", log1p(x), std::log1p(x), .x = {-0.9, 9})
  ROW1("sin", sin(x), std::sin(x), .x = {-20, 20})
  ROW1("cos", cos(x), std::cos(x), .x = {-20, 20}, .gradient_tolerance = 4e-6)
  ROW1("tan", tan(x), std::tan(x), .x = {-1.4, 1.4}, .gradient_tolerance = 4e-6)
  ROW1("asin", asin(x), std::asin(x), .x = {-0.95, 0.95})
  ROW1("acos", acos(x), std::acos(x), .x = {-0.95, 0.95})
  ROW1("atan", atan(x), std::atan(x))
  ROW1("sinh", sinh(x), std::sinh(x))
  ROW1("cosh", cosh(x), std::cosh(x))
  ROW1("tanh", tanh(x), std::tanh(x))
  ROW1("asinh", asinh(x), std::asinh(x), .x = {-9, 9})
  ROW1("acosh", acosh(x), std::acosh(x), .x = {1.1, 9})
  ROW1("atanh", atanh(x), std::atanh(x), .x = {-0.9, 0.9})
  ROW1("erf", erf(x), std::erf(x))
  ROW1("erfc", erfc(x), std::erfc(x))
  ROW1("sinc", sinc(x), x == 0 ? 1 : sine_of_pi_times(x) / (M_PI * x), .scale = 0.1, .gradient_tolerance = 4e-6)
  ROW1("deg2rad", deg2rad(x), x * (M_PI / 180), .x = {-360, 360})
  ROW1("rad2deg", rad2deg(x), x * (180 / M_PI))
  ROW1("floor", floor(x), std::floor(x))
  ROW1("ceil", ceil(x), std::ceil(x))
  ROW1("round", round(x), std::nearbyint(x))
  ROW1("round to 1 decimal", round(x, 1), std::nearbyint(x * 10) / 10, .scale = 1)
  ROW1("round to tens", round(x, -1), std::nearbyint(x / 10) * 10, .x = {-90, 90})
  ROW1("trunc", trunc(x), std::trunc(x))
  ROW1("frac", frac(x), x - std::trunc(x), .scale = 8)
  ROW1("sigmoid", sigmoid(x), logistic(x), .x = {-9, 9})
  ROW1("log_sigmoid", log_sigmoid(x), -log_one_plus_exp(-x), .x = {-9, 9})
  ROW1("softplus", softplus(x), x > 20 ? x : log_one_plus_exp(x), .x = {-9, 9})
  ROW1("softplus with beta", softplus(x, 2, 5), 2 * x > 5 ? x : log_one_plus_exp(2 * x) / 2, .x = {-9, 9})
  ROW1("relu", relu(x), nan_or(x, std::max(x, 0.)))
  ROW1("relu6", relu6(x), limited(x, 0, 6), .x = {-3, 9})
  ROW1("leaky_relu", leaky_relu(x, 0.25), x > 0 ? x : 0.25 * x)
  ROW1("elu", elu(x, 1.5), x > 0 ? x : 1.5 * std::expm1(x))
  ROW1("selu", selu(x), 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x)))
  ROW1("selu with constants", selu(x, 0.5, 3), 3 * (x > 0 ? x : 0.5 * std::expm1(x)))
  ROW1("celu", celu(x, 0.5), x > 0 ? x : 0.5 * std::expm1(x / 0.5))
  ROW1("gelu", gelu(x), x / 2 * (1 + std::erf(x * std::sqrt(0.5))), .scale = 0.5)
  ROW1("gelu_tanh", gelu_tanh(x), x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))), .scale = 1)
  ROW1("silu", silu(x), x * logistic(x), .x = {-9, 9})
  ROW1("mish", mish(x), x * std::tanh(log_one_plus_exp(x)), .x = {-9, 9})
  ROW1("hardtanh", hardtanh(x, -2, 1), limited(x, -2, 1))
  ROW1("hardsigmoid", hardsigmoid(x), limited(x / 6 + 0.5, 0, 1), .scale = 0.5)
  ROW1("hardsigmoid with slope", hardsigmoid(x, 0.25, 0.5), limited(x * 0.25 + 0.5, 0, 1), .scale = 0.5)
  ROW1("hardswish", hardswish(x), x * limited(x + 3, 0, 6) / 6, .scale = 1)
  ROW1("softsign", softsign(x), x / (1 + std::fabs(x)))
  ROW1("tanhshrink", tanhshrink(x), x - std::tanh(x), .scale = 1)
  ROW1("softshrink", softshrink(x), nan_or(x, x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0), .scale = 1)
  ROW1("hardshrink", hardshrink(x), std::fabs(x) <= 0.5 ? 0 : x)
  ROW1("shrink", shrink(x, 1, 0.5), nan_or(x, x > 1 ? x - 0.5 : x < -1 ? x + 0.5 : 0), .scale = 1)
  ROW1("threshold", threshold(x, 1, -2), x <= 1 ? -2 : x)
  ROW1("logit", logit(x), std::log(x / (1 - x)), .x = {0.05, 0.95}, .scale = 1, .gradient_tolerance = 1e-5)
  ROW1("logit with eps", logit(x, 0.125), std::log(limited(x, 0.125, 0.875) / (1 - limited(x, 0.125, 0.875))), .x = {0, 1}, .scale = 1)
  ROW2("pow", pow(x, y), std::pow(x, y), .x = {0.1, 3}, .gradient_tolerance = 1e-5, .on_integers = whole_power)
  ROW1("pow 2", pow(x, 2), x * x)
  ROW1("pow 3", pow(x, 3), x * x * x)
  ROW1("pow -1", reciprocal_power(x), 1 / x, .x = {0.3, 9}, .on_integers = [](double x, double, double) { return x == 1 || x == -1 ? x : 0; })
  ROW1("pow 2.5", pow(x, 2.5), std::pow(x, 2.5), .x = {0.1, 4}, .gradient_tolerance = 4e-6)
  ROW1("2 pow", pow(2, x), std::pow(2, x), .on_integers = [](double x, double, double) { return std::trunc(std::pow(2, x)); })
  ROW2("remainder", remainder(x, y), modulo(x, y), .y = {0.5, 4}, .scale = 4, .on_integers = [](double x, double y, double) { return y == 0 ? 0 : modulo(x, y); })
  ROW2("fmod", fmod(x, y), std::fmod(x, y), .y = {0.5, 4}, .on_integers = [](double x, double y, double) { return y == 0 ? 0 : std::fmod(x, y); })
  ROW2("minimum", minimum(x, y), smaller(x, y))
  ROW2("maximum", maximum(x, y), larger(x, y))
  ROW2("fmin", fmin(x, y), std::fmin(x, y))
  ROW2("fmax", fmax(x, y), std::fmax(x, y))
  ROW2("clamp_min", clamp_min(x, y), larger(x, y))
  ROW2("clamp_max", clamp_max(x, y), smaller(x, y))
  ROW3("clamp", clamp(x, y, z), limited(x, y, z), .y = {-2, 1}, .z = {-1, 2})
  ROW2("floor_divide", floor_divide(x, y), floored_quotient(x, y), .y = {0.5, 4}, .on_integers = [](double x, double y, double) { return y == 0 ? 0 : std::floor(x / y); })
  ROW2("xlogy", xlogy(x, y), x == 0 && !std::isnan(y) ? 0 : x * std::log(y), .y = {0.1, 4}, .gradient_tolerance = 1e-5)
  ROW2("logaddexp", logaddexp(x, y), x == y ? x + std::log(2.) : larger(x, y) + std::log1p(std::exp(-std::fabs(x - y))), .scale = 1)
  ROW2("logaddexp2", logaddexp2(x, y), x == y ? x + 1 : larger(x, y) + std::log1p(std::exp2(-std::fabs(x - y))) / M_LN2, .scale = 1)
  ROW2("copysign", copysign(x, y), std::copysign(x, y))
  ROW2("hypot", hypot(x, y), std::hypot(x, y))
  ROW2("atan2", atan2(x, y), std::atan2(x, y))
  ROW3("lerp", lerp(x, y, z), z < 0.5 ? x + z * (y - x) : y - (1 - z) * (y - x), .z = {-0.5, 1.5}, .scale = 8)
  ROW3("fma", fma(x, y, z), x * y + z, .scale = 16)
  ROW3("where", where(x > y, y, z), x > y ? y : z)
  ROW1("cast", sinter::cast<double>(x), x)
  ROW1("isnan", isnan(x), std::isnan(x))
  ROW1("isinf", isinf(x), std::isinf(x))
  ROW1("isposinf", isposinf(x), std::isinf(x) && x > 0)
  ROW1("isneginf", isneginf(x), std::isinf(x) && x < 0)
  ROW1("signbit", signbit(x), std::signbit(x))
  ROW1("nan_to_num", nan_to_num(x, -1, 7, -9), std::isnan(x) ? -1 : std::isinf(x) ? (x > 0 ? 7 : -9) : x)
  ROW1("isfinite", isfinite(x), std::isfinite(x))
  ROW2("equal", x == y, x == y)
  ROW2("not_equal", x != y, x != y)
  ROW2("less", x < y, x < y)
  ROW2("less_equal", x <= y, x <= y)
  ROW2("greater", x > y, x > y)
  ROW2("greater_equal", x >= y, x >= y)
  ROW2("and of masks", x && y, x != 0 && y != 0)
  ROW2("or of masks", x || y, x != 0 || y != 0)
  ROW1("not of a mask", !x, !(x != 0))
  ROW2("logical_and", logical_and(x, y), x != 0 && y != 0)
  ROW2("logical_or", logical_or(x, y), x != 0 || y != 0)
  ROW2("logical_xor", logical_xor(x, y), (x != 0) != (y != 0))
  ROW1("logical_not", logical_not(x), !(x != 0))
  ROW2("bit_and", x & y, static_cast<double>(whole(x) & whole(y)))
  ROW2("bit_or", x | y, static_cast<double>(whole(x) | whole(y)))
  ROW2("bit_xor", x ^ y, static_cast<double>(whole(x) ^ whole(y)))
  ROW1("bit_not", ~x, static_cast<double>(~whole(x)))
  ROW2("shift_left", x << y, y < 0 ? 0 : x * std::exp2(y))
  ROW2("shift_right", x >> y, y < 0 ? (x < 0 ? -1 : 0) : std::floor(x / std::exp2(y)))
  // clang-format on
}

#undef ROW1
#undef ROW2
#undef ROW3
#undef OP_ROW

}  // namespace op_table

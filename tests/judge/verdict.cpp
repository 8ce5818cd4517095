// tests/judge/verdict.cpp: compares results, gradients and buffers.
#include "verdict.hpp"

#include <cmath>
#include <cstdio>

namespace judge {
namespace {

/// What is known about an array: float64 truth and float32 of PyTorch, or the result alone.
struct expectation {
  const array* truth;
  const array* theirs;
  double relative, absolute;
  double scale;  ///< the true magnitude; 0: of each element its own
};

double largest(const array& a) {
  double m = 0;
  for (double x : numbers(a))
    if (std::isfinite(x)) m = std::fmax(m, std::fabs(x));
  return m;
}

void compare(const std::string& name, const std::vector<double>& got, const expectation& want, verdict& v) {
  const std::vector<double> truth = numbers(*want.truth), theirs = numbers(*want.theirs);
  if (got.size() != truth.size())
    return v.fail(name + " has " + std::to_string(got.size()) + " elements, not " + std::to_string(truth.size()));
  double worst = 0;
  std::size_t place = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == truth[i] || (std::isnan(got[i]) && std::isnan(truth[i]))) continue;
    const double scale = want.scale > 0 ? want.scale : std::fabs(truth[i]);
    const double allowed = std::fmax(4 * std::fabs(theirs[i] - truth[i]), want.absolute + want.relative * scale);
    const double error = std::fabs(got[i] - truth[i]) / allowed;
    if (!(error <= 1) && !(error <= worst)) worst = std::isnan(error) ? HUGE_VAL : error, place = i;
  }
  if (worst == 0) return;
  char text[160];
  std::snprintf(text, sizeof text, "[%zu] is %.9g, not %.9g (PyTorch %.9g): %.3g times the error allowed", place,
                got[place], truth[place], theirs[place], worst);
  v.fail(name + text);
}

shape without_leading_ones(const shape& s) {
  auto from = s.begin();
  while (from != s.end() && *from == 1) ++from;
  return {from, s.end()};
}

char kind_of(const array& a) { return a.dtype == "bool" ? 'b' : a.dtype.starts_with("float") ? 'f' : 'i'; }

/// The function of a row for the case's operands: for the type of the first floating-point tensor, otherwise for the
/// first type of a tensor that the row has.
const row::typed* function_for(const test_case& c, const row& r) {
  const auto find = [&](const std::string& dtype) -> const row::typed* {
    for (const row::typed& t : r.types)
      if (t.dtype == dtype || t.dtype.empty()) return &t;
    return nullptr;
  };
  for (const array& a : c.arrays)
    if (a.role == "in" && kind_of(a) == 'f') return find(a.dtype);
  for (const array& a : c.arrays)
    if (const row::typed* t = a.role == "in" ? find(a.dtype) : nullptr) return t;
  return find("");
}

void compare_kind(const array& want, const result& got, verdict& v) {
  if (without_leading_ones(got.extents) != without_leading_ones(want.extents)) v.fail(want.name + " has another shape");
  if (got.kind != kind_of(want)) v.fail(want.name + " has another element type");
}

/// What the case has and the row did not give; empty if that is nothing.
std::string left_out(const test_case& c, const run& given) {
  std::size_t results = 0;
  for (const array& a : c.arrays) {
    if (a.role == "out" && ++results > given.results.size()) return "result " + a.name;
    if (a.role == "bufafter" && !given.buffers.contains(a.name)) return a.name + " after the call";
    const auto is_of_a = [&](const run::leaf& leaf) { return leaf.name == a.name; };
    if (a.role == "gref" && std::none_of(given.leaves.begin(), given.leaves.end(), is_of_a))
      return "gradient of " + a.name;
  }
  return {};
}

verdict judged_by(const row& r, const test_case& c) {
  using enum verdict::kind;
  const row::typed* function = function_for(c, r);
  if (!function) return {no_form, "no such element type"};
  run state(c);
  verdict v;
  try {
    function->work(state);
  } catch (const form_not_there& e) {
    return {no_form, e.why};
  } catch (const sinter::error& e) {  // the library says that it does not take this
    return {no_form, e.what()};
  }
  for (const auto& [slot, a] : c.arguments)
    if (!state.read.contains(slot)) return {no_form, "argument " + slot};
  if (const std::string missing = left_out(c, state); !missing.empty()) return {no_form, missing};
  std::size_t n = 0;
  for (const array& out : c.arrays) {
    if (out.role != "out") continue;
    const result& got = state.results[n++];
    if (got.kind == 's') continue;
    compare_kind(out, got, v);
    const array* truth = c.find("ref", out.name);
    if (!truth) truth = &out;
    if (c.onnx && got.kind == 'f') compare(out.name, got.values, {truth, &out, 1e-3, 1e-7, 0}, v);
    else
      compare(out.name, got.values, {truth, &out, got.kind == 'f' ? 1e-6 : 0, 0, r.elementwise ? 0 : largest(*truth)},
              v);
  }
  if (n < state.results.size()) v.fail("the row gives more results than the case has");
  for (const array& after : c.arrays) {
    if (after.role != "bufafter") continue;
    const result& got = state.buffers.at(after.name);
    compare_kind(after, got, v);
    compare(after.name + " after the call", got.values, {&after, &after, got.kind == 'f' ? 1e-5 : 0, 0, largest(after)},
            v);
  }
  double slope = 0;
  for (const array& a : c.arrays)
    if (a.role == "gref" || (a.role == "cot" && !r.elementwise)) slope = std::fmax(slope, largest(a));
  for (const run::leaf& leaf : state.leaves) {
    const array* truth = c.find("gref", leaf.name);
    if (truth)
      compare("gradient of " + leaf.name, leaf.gradient(), {truth, c.find("grad", leaf.name), 1e-6, 0, slope}, v);
  }
  return v;
}

}  // namespace

verdict judged(const test_case& c, const std::string& name, const rows_by_name& rows) {
  verdict v{verdict::kind::no_op, "no row"};
  const auto at = rows.find(name);
  if (at == rows.end()) return v;
  for (const row& r : at->second) {
    v = judged_by(r, c);
    if (v.what != verdict::kind::no_form) break;
  }
  return v;
}

}  // namespace judge

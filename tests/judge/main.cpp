// tests/judge/main.cpp: runs the cases of the tables' ops, holds results and gradients against the truth, and reports.
//
// A number may be 4 times as far from the truth (ref, gref: float64) as PyTorch's own float32 is at that place, and in
// any case 1e-6 of the true magnitude. In elementwise ops that is the element's own. Where terms cancel it is a larger
// one: in ops that work along axes the largest of the tensor; for a gradient the largest of all gradients of the case,
// since that of a broadcast operand is a sum of terms like the others', and along axes the largest of the cotangent
// too. ONNX has no truth: 1e-3 of the element and 1e-7, as its own tests. What is not floating point has to be equal.
// Results of a case behind the last one that the row gives do not count.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tables.hpp"

namespace judge {
namespace {

constexpr const char* usage_text =
    "Usage: judge_tests [options]\n\n"
    "Runs cases from elsewhere on every op that has a row in tests/judge/rows_*.cpp.\n\n"
    "  --data DIR   a folder with the sets torch_ops, torch_modules and onnx_node, all of whose cases run; the "
    "environment\n"
    "               variable SINTER_DATA does the same. Otherwise the selection in tests/judge/data runs, and every "
    "case\n"
    "               of it has to pass.\n"
    "  --passed     print nothing but set and name of the cases that pass, which tests/judge/select.py reads\n"
    "  --why        also list why forms are not there\n"
    "  -h, --help   this text\n\n"
    "Exit code: 0 if no case failed, 1 if one did, 2 for a wrong option or data that cannot be read.\n";

struct verdict {
  enum class kind { pass, fail, no_form, no_op } what = kind::pass;
  std::string why;

  void fail(std::string text) {
    if (what != kind::fail) *this = {kind::fail, std::move(text)};
  }
};

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

verdict judged(const test_case& c, const row& r) {
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
    if (a.kind != "n" && !state.used.contains(slot)) return {no_form, "argument " + slot};
  std::size_t n = 0;
  for (const array& out : c.arrays) {
    if (out.role != "out" || n == state.results.size()) continue;
    const result& got = state.results[n++];
    if (got.kind == 's') continue;
    if (without_leading_ones(got.extents) != without_leading_ones(out.extents)) v.fail(out.name + " has another shape");
    if (got.kind != kind_of(out)) v.fail(out.name + " has another element type");
    const array* truth = c.find("ref", out.name);
    if (!truth) truth = &out;
    if (c.onnx && got.kind == 'f') compare(out.name, got.values, {truth, &out, 1e-3, 1e-7, 0}, v);
    else
      compare(out.name, got.values, {truth, &out, got.kind == 'f' ? 1e-6 : 0, 0, r.elementwise ? 0 : largest(*truth)},
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

struct counts {
  int of[4] = {};
  void add(verdict::kind k) { ++of[static_cast<int>(k)]; }
  void print(const std::string& set, const std::string& op) const {
    std::printf("%-14s %-44s %4d pass %4d fail %4d form not there %4d op not there\n", set.c_str(), op.c_str(), of[0],
                of[1], of[2], of[3]);
  }
};

struct options {
  std::string data;
  bool passed = false, why = false, all = false;
};

/// True unless a case failed, or, where all have to, did not pass.
bool judge_set(const options& o, const std::string& set, const std::string& prefix,
               const std::map<std::string, std::vector<const row*>>& rows) {
  std::map<std::string, counts> by_op;
  counts total;
  std::vector<std::string> failures;
  for (const test_case& c : read_cases(o.data + "/" + set)) {
    verdict v{verdict::kind::no_op, "no row"};
    const auto at = rows.find(prefix + c.op);
    if (at != rows.end())
      for (const row* r : at->second) {
        v = judged(c, *r);
        if (v.what != verdict::kind::no_form) break;
      }
    by_op[c.op].add(v.what);
    total.add(v.what);
    if (o.passed && v.what == verdict::kind::pass) std::printf("%s\t%s\n", set.c_str(), c.name.c_str());
    const bool failed = v.what == verdict::kind::fail || (o.all && v.what != verdict::kind::pass);
    if (failed || (o.why && v.what == verdict::kind::no_form))
      failures.push_back((failed ? "  FAIL " : "  form ") + c.name + ": " + v.why);
  }
  if (o.passed) return true;
  for (const auto& [op, n] : by_op) n.print(set, op);
  total.print(set, "in all");
  bool good = total.of[1] == 0 && !(o.all && total.of[0] == 0);
  for (const std::string& f : failures) {
    std::printf("%s\n", f.c_str());
    good = good && f.find("  FAIL") != 0;
  }
  return good;
}

int main_of(int count, char** arguments) {
  options o;
  if (const char* folder = std::getenv("SINTER_DATA")) o.data = folder;
  for (int i = 1; i < count; ++i) {
    const std::string a = arguments[i];
    if (a == "-h" || a == "--help") return std::fputs(usage_text, stdout), 0;
    if (a == "--data" && i + 1 < count) o.data = arguments[++i];
    else if (a == "--passed") o.passed = true;
    else if (a == "--why") o.why = true;
    else return std::fprintf(stderr, "judge_tests: unknown option %s\n%s", a.c_str(), usage_text), 2;
  }
  o.all = o.data.empty();
  if (o.all) o.data = SINTER_REPOSITORY "/tests/judge/data";
  const std::vector<row> tables[] = {unary_rows(), binary_rows(), comparison_rows(), reduction_rows(),
                                     order_rows(), layer_rows(),  shape_rows(),      conv_rows(),
                                     norm_rows(),  pool_rows(),   image_rows()};
  std::map<std::string, std::vector<const row*>> rows;
  for (const auto& table : tables)
    for (const row& r : table)
      for (const std::string& name : split(r.names, ' ')) rows[name].push_back(&r);
  bool good = true;
  try {
    for (const auto& [set, prefix] :
         {std::pair("torch_ops", "op:"), std::pair("torch_modules", "nn:"), std::pair("onnx_node", "onnx:")})
      good = judge_set(o, set, prefix, rows) && good;
  } catch (const sinter::error& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 2;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace judge

int main(int count, char** arguments) { return judge::main_of(count, arguments); }

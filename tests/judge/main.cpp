// tests/judge/main.cpp: runs the cases of the tables' ops, holds results and gradients against the truth, and reports.
#include <cstdio>
#include <cstdlib>

#include "tables.hpp"
#include "verdict.hpp"

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
    "  --self-test  judge cases whose verdicts are known instead, among them ones that are easily misread\n"
    "  -h, --help   this text\n\n"
    "Exit code: 0 if no case failed, 1 if one did, 2 for a wrong option or data that cannot be read.\n";

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
  bool passed = false, why = false, self_test = false, all = false;
};

/// True unless a case failed, or, where all have to, did not pass.
bool judge_set(const options& o, const std::string& set, const std::string& prefix, const rows_by_name& rows) {
  std::map<std::string, counts> by_op;
  counts total;
  std::vector<std::string> failures;
  for (const test_case& c : read_cases(o.data + "/" + set)) {
    const verdict v = judged(c, prefix + c.op, rows);
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
    else if (a == "--self-test") o.self_test = true;
    else return std::fprintf(stderr, "judge_tests: unknown option %s\n%s", a.c_str(), usage_text), 2;
  }
  o.all = o.data.empty();
  if (o.all) o.data = SINTER_REPOSITORY "/tests/judge/data";
  const rows_by_name rows = all_rows();
  if (o.self_test) return self_test(rows) ? 0 : 1;
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

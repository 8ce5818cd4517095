// tests/ops/reference_test.cpp: ops and their derivatives against what PyTorch gives (reference/make.py).
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../catch.hpp"
#include "table.hpp"

using namespace op_table;

namespace {

struct point {
  values operands;
  double value = 0;
  std::vector<std::string> gradients;  // empty text where PyTorch has none
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') fields.emplace_back();
    else fields.back() += c;
  }
  return fields;
}

std::map<std::string, std::vector<point>> read_points() {
  std::ifstream file(SINTER_REPOSITORY "/tests/ops/reference/values.csv");
  REQUIRE(file.good());
  std::map<std::string, std::vector<point>> points;
  std::string line;
  std::getline(file, line);
  REQUIRE(line == "row,x,y,z,value,dx,dy,dz");
  while (std::getline(file, line)) {
    const auto field = split(line);
    REQUIRE(field.size() == 8);
    point p;
    for (std::size_t i = 1; i <= 3; ++i)
      if (!field[i].empty()) p.operands.push_back(std::stod(field[i]));
    p.value = std::stod(field[4]);
    p.gradients.assign(field.begin() + 5, field.end());
    points[field[0]].push_back(p);
  }
  return points;
}

bool close(double got, double expected) {
  return got == expected || (std::isnan(got) && std::isnan(expected)) ||
         std::fabs(got - expected) <= 1e-13 * (1 + std::fabs(expected));
}

}  // namespace

TEST_CASE("ops and derivatives agree with PyTorch, at kinks and ties too") {
  const auto points = read_points();
  std::set<std::string> tried;
  for (const row& r : table()) {
    const functions* f = r.on(type::f64);
    if (f == nullptr) continue;  // ops on integers and bool
    INFO(r.name);
    const auto found = points.find(r.name);
    REQUIRE(found != points.end());
    tried.insert(r.name);
    const auto n = static_cast<index_t>(found->second.size());
    operands in(static_cast<std::size_t>(r.arity), operand{values(), {1, 1, n}, {n, n, 1}, 0});
    for (const point& p : found->second) {
      REQUIRE(static_cast<int>(p.operands.size()) == r.arity);
      for (std::size_t i = 0; i < in.size(); ++i) in[i].memory.push_back(p.operands[i]);
    }
    const values got = f->evaluate(in);
    const auto gradients = f->gradients ? f->gradients(in, values(found->second.size(), 1)) : std::vector<values>();
    for (std::size_t e = 0; e < found->second.size(); ++e) {
      const point& p = found->second[e];
      INFO("at (" << p.operands[0] << (r.arity > 1 ? ", " + std::to_string(p.operands[1]) : "")
                  << (r.arity > 2 ? ", " + std::to_string(p.operands[2]) : "") << ")");
      INFO("value " << got[e] << " instead of " << p.value);
      CHECK(close(got[e], p.value));
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (p.gradients[i].empty()) continue;
        const double g = gradients[i].empty() ? 0 : gradients[i][e];
        INFO("derivative to operand " << i << ": " << g << " instead of " << p.gradients[i]);
        CHECK(close(g, std::stod(p.gradients[i])));
      }
    }
  }
  CHECK(tried.size() == points.size());
  CHECK(tried.size() >= 80);
}

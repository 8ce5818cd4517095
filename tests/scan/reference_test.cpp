// tests/scan/reference_test.cpp: values, indices and gradients of scans and sorts against PyTorch's, stored in
// reference/rows.csv.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace sinter;

namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}
std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  for (const std::string& v : split(text, ',')) values.push_back(std::strtod(v.c_str(), nullptr));
  return values;
}

struct outcome {
  variable<double, 1> values;
  tensor<std::int64_t, 1> indices;
};

outcome run(const std::string& op, const variable<double, 1>& x) {
  const auto both = [](const auto& r) { return outcome{r.values, r.indices}; };
  if (op == "cumsum") return {cumsum(x, 0), {}};
  if (op == "cumprod") return {cumprod(x, 0), {}};
  if (op == "logcumsumexp") return {logcumsumexp(x, 0), {}};
  if (op == "cummax") return both(cummax(x, 0));
  if (op == "cummin") return both(cummin(x, 0));
  if (op == "sort") return both(sort(x, 0));
  if (op == "sort_descending") return both(sort(x, 0, true));
  if (op == "topk") return both(topk(x, 3, 0));
  REQUIRE(op == "topk_smallest");
  return both(topk(x, 3, 0, false));
}

template <class Got>
void same(const Got& got, const std::vector<double>& expected) {
  REQUIRE(got.numel() == static_cast<index_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i], v = static_cast<double>(got.data()[i]);
    INFO("element " << i);
    if (std::isnan(e)) CHECK(std::isnan(v));
    else CHECK(v == Approx(e).epsilon(1e-12).margin(1e-14));
  }
}

}  // namespace

TEST_CASE("scans and sorts and their gradients are PyTorch's", "[scan]") {
  std::ifstream file(SINTER_REPOSITORY "/tests/scan/reference/rows.csv");
  REQUIRE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    std::vector<std::string> part = split(line, ';');
    part.resize(5);
    INFO(part[0] << " of " << part[1]);
    const variable x = from_data<double>(numbers(part[1]), {8});
    const outcome y = run(part[0], x);
    same(y.values.value(), numbers(part[2]));
    if (!part[3].empty()) same(y.indices, numbers(part[3]));
    if (part[4].empty()) continue;
    y.values.backward(eval(cos(0.7 * arange<double>(static_cast<double>(y.values.numel())))));
    same(x.grad(), numbers(part[4]));
  }
  CHECK(rows == 9 * 13);
}

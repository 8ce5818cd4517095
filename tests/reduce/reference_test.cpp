// tests/reduce/reference_test.cpp: values and gradients of row-wise ops against PyTorch's, stored in
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

TEST_CASE("row-wise ops and their gradients are PyTorch's", "[reference]") {
  std::ifstream file(SINTER_REPOSITORY "/tests/reduce/reference/rows.csv");
  REQUIRE(file);
  std::string line;
  int rows = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<double> v;
    for (std::string f; std::getline(fields, f, ',');) v.push_back(std::strtod(f.c_str(), nullptr));
    REQUIRE(v.size() == 10 + 4 * 18 + 6 * 10);
    const tensor<std::int64_t, 1> label{static_cast<std::int64_t>(v[0])};
    const tensor x = from_data<double>(std::span<const double>(v).subspan(1, 9), {9});
    std::size_t at = 10;
    INFO("row " << rows);
    const auto compare = [&](const char* name, const auto& f) {
      INFO(name);
      const variable in = x.clone();
      const variable y = f(in);
      auto seed = empty_like(y.value());
      index_t i = 0;
      for (double& s : seed) s = std::cos(0.7 * static_cast<double>(i++));
      y.backward(seed);
      const auto close = [&](double got) {
        const double expected = v[at++];
        CHECK(got == Approx(expected).epsilon(1e-10).margin(1e-12));
      };
      for (double e : y.value()) close(e);
      for (double e : in.grad()) close(e);
    };
    compare("softmax", [](const auto& t) { return softmax(t, 0); });
    compare("log_softmax", [](const auto& t) { return log_softmax(t, 0); });
    compare("logsumexp", [](const auto& t) { return logsumexp(t, 0); });
    compare("cross_entropy", [&](const auto& t) { return eval(cross_entropy(t.unsqueeze(0), label)); });
    compare("var", [](const auto& t) { return eval(var(t, 0)); });
    compare("norm", [](const auto& t) { return eval(norm(t)); });
    compare("prod", [](const auto& t) { return prod(t, 0); });
    compare("max", [](const auto& t) { return max(t, 0); });
    const auto at_column = arange<double>(9);
    compare("layer_norm", [&](const auto& t) { return eval(layer_norm(t, cos(at_column), sin(at_column))); });
    compare("rms_norm", [&](const auto& t) { return eval(rms_norm(t, cos(at_column))); });
    ++rows;
  }
  CHECK(rows == 24);
}

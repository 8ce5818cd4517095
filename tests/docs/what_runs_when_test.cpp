// tests/docs/what_runs_when_test.cpp: the snippets of docs/what-runs-when.md, and the plans that it quotes.
#include <sstream>
#include <string>

#include <sinter/sinter.hpp>
#include "../catch.hpp"
#include "page.hpp"

using namespace sinter;

namespace {

/// Each line of a plan stands on the page.
void stands_there(const std::string& plan) {
  static const std::string all = page("what-runs-when.md");
  std::istringstream lines(plan);
  int checked = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    CAPTURE(line);
    CHECK(all.find("\n// " + line + "\n") != std::string::npos);
    ++checked;
  }
  CHECK(checked >= 2);
}

}  // namespace

TEST_CASE("what runs when: plans") {
  generator gen(1);
  const tensor x = randn(gen, {64, 32});
  const tensor bias = randn(gen, {32});
  const tensor w = randn(gen, {16, 32});
  const tensor b = randn(gen, {16});
  stands_there(explain(relu(x * 2.f + bias)));
  stands_there(explain(x - mean(x, 1, keepdim)));
  stands_there(explain(relu(linear(x, w, b))));
  stands_there(explain(softmax(x * 0.5f, 1)));
}

TEST_CASE("what runs when: names") {
  generator gen(1);
  const tensor x = randn(gen, {64, 32});
  // [docs:names]
  auto e = sum(x * x, 1);  // nothing has run
  tensor first = e;        // one pass over x
  tensor second = e;       // a copy of 64 numbers: e kept its sums
  auto d = x * 2.f;        // no reduction and no product: nothing is kept
  tensor third = d;        // one pass
  tensor fourth = d + 1;   // one pass, which computes x * 2 again in registers
  // [docs:end]
  CHECK(equal(first, second));
  CHECK(fourth(0, 0) == third(0, 0) + 1);
}

TEST_CASE("what runs when: gradients") {
  generator gen(1);
  const tensor x = randn(gen, {64, 32});
  const tensor target = randn(gen, {64, 16});
  variable w = randn(gen, {16, 32});
  variable b = randn(gen, {16});
  // [docs:gradients]
  variable y = relu(linear(x, w, b));        // a product with bias and relu inside; one entry of the tape
  variable loss = mean(square(y - target));  // one pass over y and target; one entry
  loss.backward();  // one pass for the second entry; for the first two products, which take along relu and b
  // [docs:end]
  CHECK(w.grad().shape() == w.shape());
  CHECK(b.grad().shape() == b.shape());
}

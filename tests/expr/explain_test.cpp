// tests/expr/explain_test.cpp: what will run is known before it runs.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

const auto a = ones<float>({100, 20}), w = ones<float>({30, 20});
const auto row = ones<float>({20}), bias = ones<float>({30});

template <class E>
std::size_t arena_requests(const E& build) {
  const auto before = memory().allocations;
  const auto y = eval(build());
  return memory().allocations - before;
}

}  // namespace

TEST_CASE("kernel_count is the number of results that evaluation allocates", "[explain]") {
  const auto same = [](const auto& build) {
    CHECK(arena_requests(build) == static_cast<std::size_t>(kernel_count<decltype(build())>));
  };
  same([] { return relu(a * 2.f + row); });
  same([] { return where(a > 0, a, tanh(a) * a); });
  same([] { return sum(exp(a) * row, 1); });
  same([] { return mean(a, 1) + 1; });
  same([] { return relu(linear(a, w, bias)) * 2; });
  same([] { return a / sum(a, 1, keepdim); });
  same([] { return softmax(a * 2, 1); });
  same([] { return let(exp(a), [](auto t) { return t * t; }); });
  static_assert(kernel_count<tensor<float, 2>> == 0);
  static_assert(kernel_count<decltype(a + a)> == 1);
  static_assert(kernel_count<decltype(relu(linear(a, w, bias)))> == 1);
  static_assert(kernel_count<decltype(a - sum(a))> == 2);
}

TEST_CASE("bytes_moved counts each leaf of a kernel once and each result once", "[explain]") {
  CHECK(bytes_moved(a + a) == 2 * 8000);
  CHECK(bytes_moved(a * row) == 2 * 8000 + 80);
  CHECK(bytes_moved(a + a.clone()) == 3 * 8000);
  CHECK(bytes_moved(sum(a)) == 8000 + 4);
  CHECK(bytes_moved(relu(linear(a, w, bias))) == 8000 + 2400 + 120 + 12000);
  CHECK(bytes_moved(row.broadcast_to({100, 20}) * 2.f) == 80 + 8000);
}

TEST_CASE("explain names ops, shapes, kernels, bytes and device", "[explain]") {
  const std::string text = explain(relu(linear(a, w, bias)) + 1);
  CHECK_THAT(text, Catch::Contains("relu") && Catch::Contains("linear") && Catch::Contains("(100, 20)") &&
                       Catch::Contains("1 kernel,") && Catch::Contains("cpu"));
  CHECK_THAT(explain(a / sum(a, 1, keepdim)),
             Catch::Contains("2 kernels") && Catch::Contains("sum") && Catch::Contains("divide"));
  CHECK_THAT(explain(let(exp(a), [](auto t) { return t * t; })), Catch::Contains("let") && Catch::Contains("exp"));
}

TEST_CASE("types tell whether a statement allocates and whether it waits", "[explain]") {
  auto y = zeros<float>({100, 20});
  auto z = zeros<float>({100});
  const auto requests = [](const auto& statement) {
    const auto before = memory().allocations;
    statement();
    return memory().allocations - before;
  };
  CHECK(requests([&] { y = relu(a * 2.f + row); }) == 0);
  CHECK(requests([&] { y = let(exp(a), [](auto t) { return t * t; }); }) == 0);
  CHECK(requests([&] { z = sum(a, 1); }) > 0);
  static_assert(!allocates<decltype(relu(a * 2.f + row))>);
  static_assert(!allocates<decltype(let(exp(a), [](auto t) { return t * t; }))>);
  static_assert(allocates<decltype(sum(a, 1))> && allocates<decltype(linear(a, w, bias))>);
  static_assert(allocates<decltype(variable<float, 2>() * 2.f)>);
  using on_gpu = tensor<float, 2, cuda<0>>;
  static_assert(!allocates<decltype(on_gpu() + on_gpu())> && !synchronises<decltype(on_gpu() + on_gpu())>);
  static_assert(!synchronises<decltype(softmax(on_gpu(), 1))> && synchronises<decltype(a + a)>);
  CHECK_THAT(explain(a + a), Catch::EndsWith("on cpu, allocates nothing in between\n"));
  CHECK_THAT(explain(sum(a)), Catch::EndsWith("on cpu, allocates\n"));
}

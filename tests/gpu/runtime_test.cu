// tests/gpu/runtime_test.cu: copies through pinned memory, graphs and error texts, where only a GPU can tell.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

using namespace sinter;
using g0 = cuda<0>;
using other = cuda<1>;

namespace {

/// 0, 1, 2, ... as float: which chunk of a copy an element came from shows in its value.
tensor<float, 1> counting(index_t n) { return arange<float>(static_cast<float>(n)); }

bool same(const tensor<float, 1>& a, const tensor<float, 1>& b) { return !eval(any(a != b)).item(); }

}  // namespace

TEST_CASE("copies of many chunks arrive whole", "[gpu]") {
  for (const index_t n :
       {index_t{1}, index_t{1000}, index_t{262144}, index_t{262145}, index_t{2097153}, index_t{5000001}}) {
    const auto host = counting(n);
    CHECK(same(host.to<g0>().to<cpu>(), host));
    CHECK(same(host.to<g0>().to<other>().to<cpu>(), host));
    CHECK(same(host.to_async<g0>().get().to_async<cpu>().get(), host));
  }
}

TEST_CASE("the source of a copy may change once the statement is over", "[gpu]") {
  auto host = counting(3000000);
  const auto expected = host.clone();
  std::vector<tensor<float, 1, g0>> copies;
  for (int i = 0; i < 8; ++i) {
    host = expected.clone();
    copies.push_back(host.to<g0>());
    host += 1;
  }
  for (const auto& one : copies) CHECK(same(one.to<cpu>(), expected));
}

TEST_CASE("threads copy in both directions at once", "[gpu]") {
  REQUIRE(available<g0>());
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&bad, t] {
      const auto host = eval(counting(700000) + static_cast<float>(t));
      for (int i = 0; i < 20; ++i)
        if (!same(eval(host.to<g0>() * 1).to<cpu>(), host)) ++bad;
    });
  for (auto& t : threads) t.join();
  CHECK(bad == 0);
}

TEST_CASE("random numbers have the bits of the CPU", "[gpu]") {
  generator a(5), b(5);
  CHECK(same(rand<float, g0>(b, {100001}).to<cpu>(), rand<float>(a, {100001})));
  CHECK(same(uniform<float, g0>(b, -0.3f, 1.7f, {100001}).to<cpu>(), uniform<float>(a, -0.3f, 1.7f, {100001})));
  CHECK_FALSE(
      eval(any(randint<int, g0>(b, -5, 1000, {100001}).to<cpu>() != randint<int>(a, -5, 1000, {100001}))).item());
  CHECK_FALSE(eval(any(bernoulli<bool, g0>(b, 0.3, {100001}).to<cpu>() != bernoulli<bool>(a, 0.3, {100001}))).item());
  const tensor there = randn<float, g0>(b, {100001}).to<cpu>(), here = randn<float>(a, {100001});
  CHECK(eval(max(abs(there - here))).item() <
        2e-6f);  // the host rounds the angle; the GPU must come near what double makes of the words
  generator c(1), d(1);
  const tensor normals = randn<float, g0>(c, {100001}).to<cpu>();
  const random_key key = d.next();
  double worst = 0;
  for (index_t i = 0; i < normals.numel(); ++i) {
    std::uint32_t words[2];
    detail::random_words<2>(key, i, words);
    const float u = static_cast<float>(words[0] >> 1) * 0x1p-31f + 0x1p-32f,
                half_turns = static_cast<float>(words[1] >> 1) * 0x1p-30f;
    const double x = std::sqrt(-2 * std::log(static_cast<double>(u))) *
                     std::cos(3.14159265358979323846 * static_cast<double>(half_turns));
    worst = std::fmax(worst, std::abs(static_cast<double>(normals(i)) - x) / std::fmax(std::abs(x), 0.1));
  }
  CHECK(worst < 1e-6);
}

TEST_CASE("a graph replayed many times keeps its memory, whatever is allocated meanwhile", "[gpu]") {
  auto x = zeros<float, g0>({100000});
  tensor<float, 0, g0> total;
  const auto step = capture<g0>([&] {
    x += 1;
    total = sum(x * x);
  });
  const auto system = memory<g0>().system_allocations;
  for (int i = 0; i < 2000; ++i) {
    step.replay();
    if (i % 100 == 0) {
      const auto noise = full<float, g0>({100000}, 3);
      const float n = static_cast<float>(i + 2);
      CHECK(total.item() == Approx(n * n * 100000));
      CHECK(eval(sum(noise)).item() == 300000);
    }
  }
  CHECK(memory<g0>().system_allocations <= system + 4);
}

TEST_CASE("a graph goes on after one that failed to be captured", "[gpu]") {
  const auto x = full<float, g0>({1000}, 2);
  tensor<float, 1, g0> y;
  CHECK_THROWS_AS(capture<g0>(
                      [&] {
                        y = x * 2;
                        static_cast<void>(y.to<cpu>());
                      },
                      0),
                  device_error);
  const auto step = capture<g0>([&] { y = x * 3; });
  step.replay();
  CHECK(same(y.to<cpu>(), full<float>({1000}, 6)));
}

TEST_CASE("products take the memory of a graph for their workspace", "[gpu]") {
  generator gen(1);
  const auto a = randn<float, g0>(gen, {512, 512}), b = randn<float, g0>(gen, {512, 512});
  const auto bias = randn<float, g0>(gen, {512});
  tensor<float, 2, g0> y;
  const auto step = capture<g0>([&] { y = relu(matmul(a, b) + bias); });
  CHECK(step.kernels() == 1);
  step.replay();
  const tensor expected = relu(matmul(a, b) + bias);
  CHECK_FALSE(eval(any(y != expected)).item());
}

TEST_CASE("a GPU that is not there is named, with what to do", "[gpu]") {
  CHECK_FALSE(available<cuda<63>>());
  CHECK_THROWS_WITH((zeros<float, cuda<63>>({1})), Catch::Contains("cuda:63 is not available"));
}

TEST_CASE("without a GPU, none is available and the error says so", "[.][without_gpu]") {  // run.sh hides it
  CHECK_FALSE(available<g0>());
  CHECK_THROWS_WITH((zeros<float, g0>({1})),
                    Catch::Contains("cuda:0 is not available") && Catch::Contains("CUDA_VISIBLE_DEVICES"));
}

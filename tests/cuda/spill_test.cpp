// tests/cuda/spill_test.cpp: kernels whose bodies are larger than what a kernel takes as parameters.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

/// Copies its own numbers to memory.
template <int N>
struct numbers_body {
  std::int32_t* to;
  std::int32_t numbers[std::size_t{N}];

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t i = g.block() * g.threads() + g.thread(); i < N; i += g.blocks() * g.threads()) to[i] = numbers[i];
  }
};

template <int N, device D>
void check_numbers(std::size_t expected_launches) {
  numbers_body<N> body{};
  const auto there = zeros<std::int32_t, D>({N});
  body.to = detail::access::data(there);
  for (int i = 0; i < N; ++i) body.numbers[i] = 7 * i + 1;
  const auto before = launches<D>();
  cuda_impl::launch_on<D>("numbers", body, {3, 0});
  CHECK(launches<D>() - before == expected_launches);
  CHECK(distance(there, eval(arange<std::int32_t>(N) * 7 + 1)) == 0);
}

}  // namespace

TEST_CASE("bodies of any size arrive whole", "[cuda]") {
  check_numbers<8100, g0>(1);
  check_numbers<8188, g0>(1);  // as many as fit
  check_numbers<8189, g0>(3);
  check_numbers<20001, g0>(4);
}

TEST_CASE("a large body is captured with its step", "[cuda]") {
  constexpr int n = 9000;
  numbers_body<n> body{};
  auto there = zeros<std::int32_t, g0>({n});
  body.to = detail::access::data(there);
  for (int i = 0; i < n; ++i) body.numbers[i] = i;
  const auto step = capture<g0>([&] {
    cuda_impl::launch_on<g0>("numbers", body, {2, 0});
    there += 1;
  });
  for (auto& x : body.numbers) x = -1;  // what was started keeps what it was given
  for (int run = 0; run < 3; ++run) {
    step.replay();
    CHECK(distance(there, eval(arange<std::int32_t>(n) + 1)) == 0);
  }
}

#if !SINTER_WITH_CUDA
/// Which has next to no room for parameters; see the simulator.
using g3 = cuda<3>;

TEST_CASE("statements, sums, rows, scans and sorts do the same when they spill", "[cuda]") {
  const auto a = numbers({9, 5, 21}, 1);
  const auto b = numbers({5, 21}, 2);
  const auto da = a.to<g3>();
  const auto db = b.to<g3>();
  const auto before = launches<g3>();
  const tensor y = sigmoid(da * db + 1) * tanh(da);
  CHECK(launches<g3>() - before > 1);
  CHECK(distance(y, eval(sigmoid(a * b + 1) * tanh(a))) < 1e-6);
  CHECK(distance(eval(sum(da * da, 1)), eval(sum(a * a, 1))) < 1e-6);
  CHECK(distance(eval(softmax(da + db, 2)), eval(softmax(a + b, 2))) < 1e-6);
  CHECK(distance(eval(cumsum(da * 2, 2)), eval(cumsum(a * 2, 2))) < 1e-6);
  CHECK(distance(sort(da, 1).values, sort(a, 1).values) == 0);
  CHECK(distance(topk(da, 2, 2).indices, topk(a, 2, 2).indices) == 0);
  const variable x = a;
  const variable r = b;
  const variable dx = da;
  const variable dr = db;
  const variable on_host = sum(exp(x * r * 0.1));
  const variable there = sum(exp(dx * dr * 0.1));
  on_host.backward();
  there.backward();
  CHECK(distance(dx.grad(), x.grad()) < 1e-5);
  CHECK(distance(dr.grad(), r.grad()) < 1e-5);
}
#endif

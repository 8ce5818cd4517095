// tests/cuda/fewer_blocks_test.cpp: the blocks of a simulated GPU that go on to further work, where a grid has fewer
// than it asks for.
#include <sinter/sequences.hpp>

#include "compare.hpp"
#include "simulator.hpp"

#include "sinter/cuda/attention.hpp"

using namespace sinter;
using compare::numbers;

namespace {

class grid_limit {
 public:
  explicit grid_limit(index_t most) : before_(std::exchange(cuda_impl::simulated_grid_limit(), most)) {}
  grid_limit(const grid_limit&) = delete;
  grid_limit& operator=(const grid_limit&) = delete;
  ~grid_limit() { cuda_impl::simulated_grid_limit() = before_; }

 private:
  index_t before_;
};

template <class F>
void with_few_blocks(const F& f) {
  for (const index_t most : {1, 2}) {
    const grid_limit fewer(most);
    f();
  }
}
template <class F, class... T>
void same(double within, const F& f, const T&... at) {
  with_few_blocks([&] { CHECK(compare::values(f, at...) <= within); });
}
template <class F, class... T>
void same_gradients(double within, const F& f, const T&... at) {
  with_few_blocks([&] { CHECK(compare::gradients(f, at...) <= within); });
}
template <class X>
constexpr auto beside(const auto& host, const X&) {
  return host.template to<device_of<X>>();
}

}  // namespace

TEST_CASE("few blocks for elementwise statements, gathers and plain products", "[cuda]") {
  const auto x = numbers({70, 90}, 1);
  const auto row = numbers({90}, 2);
  same(0, [](const auto& v) { return eval(v * 2 + 1); }, x);
  same(0, [](const auto& v, const auto& r) { return eval(v.transpose().contiguous().transpose() * r); }, x, row);
  same_gradients(1e-4, [](const auto& v, const auto& r) { return eval(v * r + v); }, x, row);
  const auto y = numbers({700, 20}, 3);
  const auto index = eval(cast<std::int64_t>(abs(numbers({700, 13}, 4))));
  const auto rows = eval(cast<std::int64_t>(abs(numbers({50}, 5)) * 10));
  same(0, [&](const auto& v) { return gather(v, 1, beside(index, v)); }, y);
  same_gradients(1e-5, [&](const auto& v) { return gather(v * 1, 1, beside(index, v)); }, y);
  same_gradients(1e-4, [&](const auto& v) { return index_select(v * 1, 0, beside(rows, v)); }, y);
  same(0, [](const auto& v) { return matmul(v, v.transpose()); }, numbers<int>({50, 9}, 5));
}

TEST_CASE("few blocks for rows", "[cuda]") {
  const std::pair<index_t, index_t> shapes[] = {{600, 20}, {40, 257}, {5, 1024}, {3, 12000}};
  for (const auto& [rows, n] : shapes) {
    const auto x = numbers({rows, n}, 1);
    const auto gain = numbers({n}, 2), bias = numbers({n}, 3);
    auto labels = zeros<std::int64_t>({rows});
    for (index_t r = 0; r < rows; ++r) labels(r) = r * 5 % n;
    same(1e-6, [](const auto& v) { return softmax(v, 1); }, x);
    same(1e-5, [](const auto& v) { return log_softmax(v * 2, 1); }, x);
    same(1e-3, [](const auto& v, const auto& g, const auto& b) { return layer_norm(v, g, b) * v; }, x, gain, bias);
    same_gradients(1e-5, [](const auto& v) { return eval(softmax(v, 1)); }, x);
    same_gradients(1e-4, [](const auto& v) { return eval(rms_norm(v)); }, x);
    same_gradients(1e-5, [&](const auto& v) { return eval(cross_entropy(v, beside(labels, v))); }, x);
  }
}

TEST_CASE("few blocks for folds", "[cuda]") {
  const index_t shapes[][2] = {{600, 20}, {7, 5003}, {5003, 7}, {300, 300}};
  for (const auto& [rows, n] : shapes) {
    const auto x = numbers({rows, n}, 1);
    same(1e-4, [](const auto& v) { return sum(v * 2, 1); }, x);
    same(1e-4, [](const auto& v) { return eval(tanh(mean(v, 0)) + 1); }, x);
    same(1e-5, [](const auto& v) { return logsumexp(v, 0); }, x);
    same(0, [](const auto& v) { return argmax(v, 1); }, x);
    same(0, [](const auto& v) { return argmin(v, 0); }, x);
  }
  same(1e-5, [](const auto& v) { return eval(sum(v)); }, numbers({123457}, 2));
  same(1e-5, [](const auto& v) { return sum(v, {1, 3}); }, numbers({40, 5, 60, 7}, 3));
  same(1e-5, [](const auto& v) { return sum(v, {0, 2}); }, numbers({40, 5, 60, 7}, 3));
}

TEST_CASE("few blocks for scans", "[cuda]") {
  for (const auto& x : {numbers({600, 9}, 1), numbers({3, 5000}, 2), numbers({20, 700}, 3)}) {
    same(1e-5, [](const auto& v) { return cumsum(v * 2, 1); }, x);
    same(1e-5, [](const auto& v) { return logcumsumexp(v, 0); }, x);
    same(0, [](const auto& v) { return cummax(v, 1).indices; }, x);
    same(0, [](const auto& v) { return cummin(v.transpose(), 1).indices; }, x);
  }
  same(1e-5, [](const auto& v) { return cumsum(v, 0); }, numbers({40011}, 4));
}

TEST_CASE("few blocks for what is put in order", "[cuda]") {
  const auto with_equals = [](const auto& x) { return eval(floor(x * 2)); };
  for (const index_t n : {40, 257, 4103}) {
    same(0, [n](const auto& v) { return topk(v, n / 4, 1).indices; }, with_equals(numbers({5, n}, 1)));
    same(0, [](const auto& v) { return topk(v, 3, 0, false).indices; }, numbers<double>({n, 3}, 2));
    same(0, [](const auto& v) { return topk(v, 2, 1).values; }, numbers({9, n}, 3));
    same(0, [](const auto& v) { return argsort(v, 1, true); }, with_equals(numbers({5, n}, 4)));
  }
  same(0, [](const auto& v) { return unique(v).inverse; }, with_equals(numbers({20011}, 5)));
  same(0, [](const auto& v) { return bincount(v, 300); }, eval(abs(numbers<int>({20011}, 6))));
  same(0, [](const auto& v) { return bincount(v, 5000); }, eval(abs(numbers<int>({20011}, 6))));
}

TEST_CASE("few blocks for attention", "[cuda]") {
  const auto q = numbers({2, 4, 70, 8}, 1), k = numbers({2, 2, 67, 8}, 2), v = numbers({2, 2, 67, 130}, 3);
  for (const auto& mask : {numbers({70, 67}, 4), numbers({1, 67}, 5)}) {
    const auto masked = [](const auto&... x) { return attention(x..., {.causal = true, .scale = 0.1}); };
    same(1e-5, masked, q, k, v, mask);
    same_gradients(1e-4, masked, q, k, v, mask);
  }
}

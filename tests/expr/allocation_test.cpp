// tests/expr/allocation_test.cpp: statements allocate their result from the arena and nothing from the heap.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace {
std::atomic<std::size_t> heap_requests{0};
}

[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++heap_requests;
  return std::malloc(size != 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

using namespace sinter;

namespace {

/// Heap and arena requests of the second of two runs of f: the first may start threads and grow scratch memory.
template <class F>
std::pair<std::size_t, std::size_t> requests(F f) {
  f();
  const auto heap = heap_requests.load();
  const auto arena = memory().allocations;
  f();
  return {heap_requests.load() - heap, memory().allocations - arena};
}

using counts = std::pair<std::size_t, std::size_t>;

}  // namespace

TEST_CASE("an elementwise statement takes one arena block and nothing from the heap", "[allocation]") {
  for (const index_t n : {5, 1000, 200000}) {
    const auto a = ones<float>({n, 3}), b = ones<float>({n, 3});
    const auto row = ones<float>({3});
    auto y = zeros<float>({n, 3});
    CHECK(requests([&] { const tensor t = a * b + row * 2.f; }) == counts{0, 1});
    CHECK(requests([&] { const tensor t = where(a > b, a, tanh(b)); }) == counts{0, 1});
    CHECK(requests([&] { y = a * 2 - b; }) == counts{0, 0});
    CHECK(requests([&] { y = a * 2 - y; }) == counts{0, 1});
    CHECK(requests([&] { y += a * row; }) == counts{0, 0});
    CHECK(requests([&] { y.slice(1, 0, 2) = a.slice(1, 1, 3).flip(0); }) == counts{0, 0});
    CHECK(requests([&] { y.in_place() = y / b; }) == counts{0, 0});
    CHECK(requests([&] { fuse(y = y * 0.5f + a, b.in_place() -= a); }) == counts{0, 0});
    CHECK(requests([&] { const tensor t = let(exp(a), [](auto u) { return u * u; }); }) == counts{0, 1});
    CHECK(requests([&] { const tensor t = a.transpose() + 1.f; }) == counts{0, 1});
  }
}

TEST_CASE("a new value takes the place of an old one that nobody else can see", "[allocation]") {
  const auto a = ones<float>({64, 64});
  auto y = zeros<float>({64, 64});
  const void* const place = y.data();
  y = a + 1;
  CHECK(y.data() == place);
  CHECK(y(63, 63) == 2);

  const auto other = y;
  y = a + 2;
  CHECK(y.data() != place);
  CHECK(other(63, 63) == 2);

  auto part = zeros<float>({65, 64}).slice(0, 1, 65);
  part = a + 3;
  CHECK(part(63, 63) == 4);
  auto turned = zeros<float>({64, 64}).transpose();
  turned = a + a.transpose() * 4;
  CHECK(turned.is_contiguous());
  auto smaller = zeros<float>({3, 64});
  smaller = a + 5;
  CHECK(smaller.shape() == a.shape());
  CHECK_THROWS_AS(smaller = a + ones<float>({3, 3}), shape_error);
  CHECK(smaller(0, 0) == 6);

  std::vector<float> mine(64 * 64, 7.f);
  auto borrowed = wrap(mine.data(), {64, 64});
  borrowed = a + 7;
  CHECK(mine[0] == 7);
  CHECK(borrowed(0, 0) == 8);
  auto fused = wrap(mine.data(), {64, 64});
  fuse(fused = a + 8, y = a + 9);
  CHECK(mine[0] == 7);
  CHECK(fused(0, 0) == 9);
}

TEST_CASE("views take nothing", "[allocation]") {
  const auto a = ones<float>({20, 30});
  index_t total = 0;
  CHECK(requests([&] {
          total += a.slice(0, 1, 5).transpose().flip(0).unsqueeze(1).numel();
          total += a.slice(1, 0, 10).unsqueeze(0).reshape({5, 4, 2, 5}).numel();
          total += a.broadcast_to({4, 20, 30})[2].select(1, 3).numel();
        }) == counts{0, 0});
  CHECK(total == 2 * (120 + 200 + 20));
}

TEST_CASE("each point takes its slot from the heap and its result from the arena", "[allocation]") {
  const auto a = ones<float>({64, 64});
  const auto b = ones<float>({64});
  CHECK(requests([&] { const tensor t = sum(a * 2.f, 1) + 1; }) == counts{1, 1});
  CHECK(requests([&] { const tensor t = relu(linear(a, a, b)); }) == counts{1, 1});
  CHECK(requests([&] { const tensor t = softmax(a * 2.f, 1); }) == counts{1, 1});
  CHECK(requests([&] { const tensor t = exp(softmax(a * 2.f, 1)) + a; }) == counts{1, 1});
  CHECK(requests([&] { const tensor t = layer_norm(a * 2.f, b, b); }) == counts{1, 2});  // and a factor per row
}

TEST_CASE("a prepared model takes only slots from the heap, and nothing from the system, after its first call",
          "[allocation]") {
  generator gen(1);
  const nn::sequential model(nn::conv2d(3, 16, 3, gen, {.padding = 1}), nn::batch_norm2d(16), nn::relu(),
                             nn::conv2d(16, 32, 3, gen, {.padding = 1}), nn::relu(),
                             nn::conv2d(32, 32, 3, gen, {.padding = 1, .groups = 32}), nn::flatten(),
                             nn::linear(32 * 16 * 16, 10, gen));
  const auto ready = nn::prepare(model);
  const tensor<float, 4> x = randn(gen, {1, 3, 16, 16});
  static_cast<void>(ready(x));
  const std::size_t system = memory().system_allocations;
  constexpr std::size_t points = 4;  // three convolutions, a product
  for (int call = 0; call < 5; ++call) CHECK(requests([&] { const tensor y = ready(x); }).first == points);
  CHECK(memory().system_allocations == system);
}

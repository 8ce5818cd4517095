// tests/core/arena_test.cpp: the arena's statistics, reuse of blocks, limits, and behaviour when memory runs out.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

using namespace sinter;
using host_arena = sinter::detail::caching_arena<sinter::detail::host_memory>;

namespace {

struct limit {
  explicit limit(std::size_t bytes) { set_memory_limit<numa<5>>(bytes); }
  ~limit() { set_memory_limit<numa<5>>(0); }
};

}  // namespace

TEST_CASE("blocks are at least as large as asked for and waste at most an eighth", "[arena]") {
  std::size_t before = 0;
  for (std::size_t n = 0; n < 70000; n += n < 3000 ? 1 : 37) {
    const std::size_t size = host_arena::block_size(n);
    CHECK(size >= n);
    CHECK(size % 64 == 0);
    CHECK(size >= before);
    if (n > 512) CHECK(size * 8 <= n * 9 + 8 * 128);
    CHECK(host_arena::block_size(size) == size);
    before = size;
  }
}

TEST_CASE("bytes in use and the peak follow tensors", "[arena]") {
  using D = numa<5>;
  empty_cache<D>();
  const std::size_t start = memory<D>().bytes_in_use;
  reset_peak_memory<D>();
  {
    const auto a = zeros<float, D>({1000});
    const std::size_t one = memory<D>().bytes_in_use - start;
    CHECK(one >= 4000);
    {
      const auto b = zeros<float, D>({1000});
      const auto view = b.slice(0, 3, 4);
      const tensor c = b;
      CHECK(memory<D>().bytes_in_use - start == 2 * one);
    }
    CHECK(memory<D>().bytes_in_use - start == one);
    CHECK(memory<D>().peak_bytes - start == 2 * one);
    CHECK(memory<D>().bytes_cached >= one);
    reset_peak_memory<D>();
    CHECK(memory<D>().peak_bytes == memory<D>().bytes_in_use);
  }
  CHECK(memory<D>().bytes_in_use == start);
  empty_cache<D>();
  CHECK(memory<D>().bytes_cached == 0);
}

TEST_CASE("a freed block serves the next request of its size", "[arena]") {
  using D = numa<5>;
  const void* first = zeros<float, D>({5000}).data();
  const std::size_t system = memory<D>().system_allocations;
  for (int i = 0; i < 100; ++i) CHECK(static_cast<const void*>(zeros<float, D>({4990 + i % 10}).data()) == first);
  CHECK(memory<D>().system_allocations == system);
}

TEST_CASE("a view keeps the storage of its base alive", "[arena]") {
  using D = numa<5>;
  const std::size_t start = memory<D>().bytes_in_use;
  {
    tensor<float, 1, D> view;
    {
      const auto base = arange<float, D>(100000);
      view = base.slice(0, 5, 6);
    }
    CHECK(memory<D>().bytes_in_use > start);
    CHECK(view(0) == 5);
  }
  CHECK(memory<D>().bytes_in_use == start);
}

TEST_CASE("arenas of different devices count apart", "[arena]") {
  const auto before = memory<numa<6>>();
  const auto x = zeros<float, numa<5>>({100});
  CHECK(memory<numa<6>>().bytes_in_use == before.bytes_in_use);
  CHECK(memory<numa<6>>().allocations == before.allocations);
}

TEST_CASE("tensor data starts on a cache line", "[arena]") {
  for (index_t n : {0, 1, 15, 100, 5000, 1000000})
    CHECK(reinterpret_cast<std::uintptr_t>(zeros<std::int8_t, numa<5>>({n}).data()) % 64 == 0);
}

TEST_CASE("large blocks begin at different places of a page, and go back to the system from there", "[arena]") {
  host_arena arena("places test");
  for (const std::size_t n : {std::size_t{64} << 10, std::size_t{100000}, std::size_t{5} << 20}) {
    std::set<std::uintptr_t> places;
    std::vector<void*> blocks;
    for (int i = 0; i < 16; ++i) {
      blocks.push_back(arena.allocate(n));
      std::memset(blocks.back(), 1, n);
      CHECK(reinterpret_cast<std::uintptr_t>(blocks.back()) % 64 == 0);
      places.insert(reinterpret_cast<std::uintptr_t>(blocks.back()) % 4096);
    }
    CHECK(places.size() == 16);
    for (void* p : blocks) arena.release(p, n);
    arena.empty_cache();
  }
  CHECK(arena.stats().bytes_cached == 0);
}

TEST_CASE("over its limit the arena throws, leaves everything intact, and goes on", "[arena]") {
  using D = numa<5>;
  auto a = full<float, D>({1000}, 3.f);
  auto b = full<float, D>({1000}, 4.f);
  const tensor<float, 1, D> alias = a;
  empty_cache<D>();
  const limit hold(memory<D>().bytes_in_use + 1024);
  const std::size_t in_use = memory<D>().bytes_in_use;

  CHECK_THROWS_AS((zeros<float, D>({1000})), out_of_memory);
  CHECK_THROWS_WITH((zeros<float, D>({1000})), Catch::Contains("numa:5") && Catch::Contains("bytes"));
  CHECK_THROWS_AS(a = a * 2, out_of_memory);
  CHECK_THROWS_AS(a += a.flip(0), out_of_memory);  // needs a temporary
  CHECK_THROWS_AS(a = sum(a.unsqueeze(0) * 2, 0), out_of_memory);
  CHECK_THROWS_AS(fuse(a = a * 2, b = b + alias), out_of_memory);
  CHECK(memory<D>().bytes_in_use == in_use);
  for (int i = 0; i < 1000; ++i) {
    CHECK(a(i) == 3);
    CHECK(b(i) == 4);
  }
  a += 1;  // in place needs no memory
  CHECK(alias(7) == 4);
  CHECK(zeros<float, D>({10}).numel() == 10);
  set_memory_limit<D>(0);
  CHECK(zeros<float, D>({100000}).numel() == 100000);
}

TEST_CASE("cached blocks are given back before the arena gives up", "[arena]") {
  using D = numa<5>;
  empty_cache<D>();
  {
    const auto cached = zeros<float, D>({10000});
  }
  CHECK(memory<D>().bytes_cached > 0);
  const limit hold(memory<D>().bytes_in_use + 100000);
  CHECK((zeros<float, D>({20000}).numel()) == 20000);
  CHECK(memory<D>().bytes_cached <= 100000);
}

TEST_CASE("tensors of 2^k bytes take 2^k bytes and a header", "[arena]") {
  using D = numa<5>;
  for (index_t n = 64; n <= index_t{1} << 24; n *= 2) {
    const std::size_t start = memory<D>().bytes_in_use;
    const auto x = empty<std::int8_t, D>({n});
    CHECK(memory<D>().bytes_in_use - start == static_cast<std::size_t>(n) + 64);
  }
}

TEST_CASE("the limit holds for blocks that were cached before it was set", "[arena]") {
  using D = numa<5>;
  const auto make = [] { return empty<float, D>({10000}); };
  {
    const auto a = make(), b = make(), c = make();
  }
  CHECK(memory<D>().bytes_cached >= 120000);
  const std::size_t in_use = memory<D>().bytes_in_use;
  const limit hold(in_use + 50000);
  CHECK(in_use + memory<D>().bytes_cached <= in_use + 50000);
  {
    const auto a = make();
    CHECK_THROWS_AS(make(), out_of_memory);
    CHECK(memory<D>().bytes_in_use <= in_use + 50000);
  }
  CHECK(make().numel() == 10000);
}

TEST_CASE("tensors that hold more than the limit stay, and what they free goes back to the system", "[arena]") {
  using D = numa<5>;
  empty_cache<D>();
  const std::size_t in_use = memory<D>().bytes_in_use;
  std::vector<tensor<float, 1, D>> held;
  for (int i = 0; i < 4; ++i) held.push_back(full<float, D>({10000}, 2.f));
  const limit hold(in_use + 50000);
  held.pop_back();
  CHECK(memory<D>().bytes_cached == 0);
  CHECK_THROWS_AS((empty<float, D>({10000})), out_of_memory);
  held.resize(1);
  CHECK(memory<D>().bytes_in_use + memory<D>().bytes_cached <= in_use + 50000);
  CHECK(held[0](9999) == 2);
  CHECK_THROWS_AS((empty<float, D>({10000})), out_of_memory);
  held.clear();
  CHECK((empty<float, D>({10000}).numel()) == 10000);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which end the program instead
TEST_CASE("what the system cannot give is out_of_memory", "[arena]") {
  CHECK_THROWS_AS((empty<float, numa<5>>({index_t{1} << 58})), out_of_memory);
  CHECK(zeros<float>({3}).numel() == 3);
}
#endif

TEST_CASE("an asynchronous copy without memory reports it on get", "[arena]") {
  const auto x = zeros<float>({100000});
  empty_cache<numa<5>>();
  const limit hold(memory<numa<5>>().bytes_in_use + 1024);
  auto coming = x.to_async<numa<5>>();
  CHECK_THROWS_AS(coming.get(), out_of_memory);
}

TEST_CASE("copies beside the program get the block that was freed first, and are told when that was", "[arena]") {
  host_arena arena("beside test");
  void* const blocks[] = {arena.allocate(1000), arena.allocate(1000), arena.allocate(1000)};
  for (void* const b : blocks) arena.release(b, 1000);
  CHECK(arena.frees() == 3);
  CHECK(arena.allocate(1000) == blocks[2]);
  const auto& given = sinter::detail::given_beside();
  CHECK(given.at == nullptr);
  void* fresh = nullptr;
  {
    const sinter::detail::copying_beside beside;
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(arena.allocate(1000) == blocks[i]);
      CHECK(given.at == blocks[i]);
      CHECK(given.freed == i + 1);
    }
    fresh = arena.allocate(1000);
    CHECK(given.at == fresh);
    CHECK(given.freed == 0);
  }
  CHECK(arena.frees() == 3);
  for (void* const b : blocks) arena.release(b, 1000);
  arena.release(fresh, 1000);
  CHECK(arena.frees() == 7);
  CHECK(arena.allocate(1000) == fresh);
  arena.release(fresh, 1000);
  CHECK(given.at == fresh);
  sinter::detail::given_beside() = {};
  arena.empty_cache();
}

TEST_CASE("a reserve keeps what was used while it was open", "[arena]") {
  host_arena arena("reserve test");
  const std::size_t n = 1000, size = host_arena::block_size(n);
  void* const old = arena.allocate(n);
  void* const kept = arena.allocate(n);
  const int number = arena.open_reserve();
  void* const first = arena.allocate(n);
  arena.release(first, n);
  CHECK(arena.allocate(n) == first);  // what the step freed it uses again
  arena.release(old, n);              // and what it may have read
  void* const second = arena.allocate(n);
  CHECK(second == old);
  void* const third = arena.allocate(n);
  arena.release(second, n);
  arena.close_reserve();
  CHECK(arena.stats().bytes_reserved == size);
  arena.release(third, n);  // comes back after the reserve was closed
  arena.release(kept, n);   // was never in it
  CHECK(arena.stats().bytes_reserved == 2 * size);
  CHECK(arena.stats().bytes_cached == size);
  CHECK(arena.allocate(n) == kept);
  arena.empty_cache();
  CHECK(arena.stats().bytes_reserved == 2 * size);
  arena.drop_reserve(number);
  CHECK(arena.stats().bytes_reserved == 0);
  CHECK(arena.stats().bytes_cached == 2 * size);
  arena.release(first, n);  // held all the while; now like any other
  CHECK(arena.stats().bytes_cached == 3 * size);
  arena.release(kept, n);
  arena.empty_cache();
  CHECK(arena.stats().bytes_in_use == 0);
}

TEST_CASE("threads allocate, share and free at the same time", "[arena][threads]") {
  using D = numa<7>;
  const std::size_t start = memory<D>().bytes_in_use;
  const auto shared = arange<int, D>(1000);
  {
    std::vector<std::thread> threads;
    std::atomic<int> bad{0};
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          const tensor<int, 1, D> own = shared.slice(0, t, 1000 - i % 7);
          const tensor y = own + t;
          if (y(10) != 10 + 2 * t) ++bad;
        }
      });
    for (auto& t : threads) t.join();
    CHECK(bad == 0);
  }
  CHECK(memory<D>().bytes_in_use > start);
}

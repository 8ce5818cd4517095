// tests/core/cache_test.cpp: how much freed memory an arena keeps, what it gives back, and which blocks serve whom.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

using namespace sinter;

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();

/// The memory that an arena has taken, and how often.
struct system_memory {
  struct block {
    std::size_t size;
    int number;  ///< of this taking; an address may come again
  };
  std::map<void*, block> taken;
  int takings = 0;
  std::size_t bytes = 0, most = 0;  ///< taken now; that may be, 0: any
  bool breaks = false;              ///< take() throws
  int strangers = 0;                ///< addresses given back that were not taken

  ~system_memory() {
    for (const auto& entry : taken) std::free(entry.first);
  }
};

/// A source as that of a GPU: without room for a header.
struct counted_memory {
  static constexpr std::size_t header = 0;
  static constexpr std::size_t allowance = 64 * kib;
  system_memory* system;

  void* take(std::size_t size) {
    if (system->breaks) throw std::runtime_error("broken");
    if (system->most != 0 && system->bytes + size > system->most) return nullptr;
    void* const p = std::malloc(size);
    system->taken[p] = {size, system->takings++};
    system->bytes += size;
    return p;
  }
  void give(void* p) noexcept {
    const auto at = system->taken.find(p);
    if (at == system->taken.end()) {
      ++system->strangers;
      return;
    }
    system->bytes -= at->second.size;
    system->taken.erase(at);
    std::free(p);
  }
};
using arena_type = sinter::detail::caching_arena<counted_memory>;

std::size_t bound(std::size_t peak) { return peak + std::max(peak, counted_memory::allowance); }

/// An arena, and what must be true of it at any time. Its peak is that of all allocations, so tests of fewer than
/// arena_type::lately of them may use it as the recent one.
struct checked_arena {
  system_memory system;
  arena_type arena{"cache test", counted_memory{&system}};

  struct held_block {
    void* at;
    std::size_t bytes;
    int number;
  };

  memory_stats stats() const { return arena.stats(); }
  held_block take(std::size_t bytes) {
    void* const p = arena.allocate(bytes);
    check();
    return {p, bytes, system.taken.at(p).number};
  }
  void give(const held_block& b) {
    arena.release(b.at, b.bytes);
    check();
  }
  /// Takes blocks of these sizes, and frees them.
  void use(const std::vector<std::size_t>& sizes) {
    std::vector<held_block> blocks;
    for (const std::size_t bytes : sizes) blocks.push_back(take(bytes));
    for (const held_block& b : blocks) give(b);
  }
  /// The same, each freed before the next.
  void use_in_turn(const std::vector<std::size_t>& sizes) {
    for (const std::size_t bytes : sizes) give(take(bytes));
  }
  void check() {
    const memory_stats s = stats();
    if (s.bytes_in_use + s.bytes_cached > bound(s.peak_bytes)) FAIL("too much is cached: " << s.bytes_cached);
    if (s.bytes_held != system.bytes) FAIL("bytes_held is " << s.bytes_held << ", taken are " << system.bytes);
    if (s.system_allocations - s.system_frees != system.taken.size()) FAIL("blocks are lost");
    if (s.bytes_in_use + s.bytes_cached + s.bytes_reserved > s.bytes_held) FAIL("more than is held");
    if (system.strangers != 0) FAIL("a block was given back twice");
  }
  bool has(const held_block& b) const {
    const auto at = system.taken.find(b.at);
    return at != system.taken.end() && at->second.number == b.number;
  }
  std::size_t unused_ends() const {
    const memory_stats s = stats();
    return s.bytes_held - s.bytes_in_use - s.bytes_cached - s.bytes_reserved;
  }
};

/// What a training step of `size` samples of `side` * `side` numbers takes, beside 300 KB of parameters.
std::vector<std::size_t> step_of(std::size_t size, std::size_t side) {
  std::vector<std::size_t> sizes;
  for (const std::size_t channels : {1u, 4u, 8u, 8u, 16u})
    for (const std::size_t pool : {1u, 2u}) sizes.push_back(size * channels * (side / pool) * (side / pool) * 4);
  return sizes;
}

}  // namespace

TEST_CASE("sizes of blocks are numbered in ascending order", "[cache]") {
  using sizes = sinter::detail::block_sizes;
  for (std::size_t n = 1; n < 300; ++n) {
    CHECK(sizes::number(sizes::size(n)) == n);
    CHECK(sizes::round_up(sizes::size(n)) == sizes::size(n));
    CHECK(sizes::round_up(sizes::size(n) + 1) == sizes::size(n + 1));
    if (n >= 8) CHECK(sizes::size(n + 8) == 2 * sizes::size(n));
  }
}

TEST_CASE("whatever shapes the steps of a program have, what is cached stays within the bound", "[cache]") {
  std::mt19937 random(1);
  const auto from = [&](std::size_t first, std::size_t last) { return first + random() % (last - first + 1); };
  const std::function<std::vector<std::size_t>(std::size_t)> steps[] = {
      [&](std::size_t) { return step_of(from(1, 7), from(8, 36)); },                              // uniform
      [&](std::size_t i) { return step_of(4, 8 + i / 40); },                                      // growing
      [&](std::size_t i) { return i % 2 == 0 ? step_of(3, 33) : step_of(7, 20); },                // two by turns
      [&](std::size_t i) { return i % 100 == 50 ? step_of(30, 50) : step_of(2, from(8, 12)); }};  // rare spikes
  for (const auto& step : steps) {
    checked_arena a;
    const auto parameters = a.take(300 * kib);
    for (std::size_t i = 0; i < 1500; ++i) a.use(step(i));  // checks after each block
    const memory_stats s = a.stats();
    CHECK(s.bytes_held <= bound(s.peak_bytes));
    CHECK(s.bytes_in_use == arena_type::block_size(300 * kib));
    CHECK(s.system_allocations < s.allocations / 8);
    a.give(parameters);
  }
}

TEST_CASE("steps of fixed shapes ask the system for nothing after the first", "[cache]") {
  checked_arena a;
  const auto parameters = a.take(300 * kib);
  std::size_t after_first = 0;
  for (int i = 0; i < 20000; ++i) {  // past several reviews
    a.use(step_of(5, 17));
    if (i == 0) after_first = a.stats().system_allocations;
  }
  CHECK(a.stats().allocations > 2 * arena_type::lately);
  CHECK(a.stats().system_allocations == after_first);
  CHECK(a.stats().system_frees == 0);
  a.give(parameters);
}

TEST_CASE("fixed steps of two phases that have no size in common ask the system for nothing after the first",
          "[cache]") {
  checked_arena a;
  const auto parameters = a.take(64 * kib);
  for (int i = 0; i < 10; ++i) {
    a.use({8 * mib});  // as the gradient of a large first layer, before those of small ones
    a.use({3 * mib, 2560 * kib, 2 * mib});
  }
  CHECK(a.stats().system_allocations == 5);
  a.give(parameters);
}

TEST_CASE("steps whose sizes of blocks exceed the bound in sum use larger blocks for smaller requests", "[cache]") {
  checked_arena a;
  const auto parameters = a.take(1 * mib);
  std::size_t warm = 0;
  for (int i = 0; i < 100; ++i) {
    a.use_in_turn({3000 * kib, 2600 * kib, 2200 * kib, 1900 * kib});  // 4 MB in use at once; 11 MB in sum
    if (i == 1) warm = a.stats().system_allocations;
  }
  CHECK(a.stats().system_allocations == warm);
  CHECK(a.stats().bytes_in_use == 1 * mib);
  a.give(parameters);
}

TEST_CASE("small programs keep all that they free", "[cache]") {
  checked_arena a;
  for (std::size_t i = 1; i <= 40; ++i) a.use_in_turn({i * 64});
  CHECK(a.stats().system_frees == 0);
  const std::size_t warm = a.stats().system_allocations;
  for (std::size_t i = 1; i <= 40; ++i) a.use_in_turn({i * 64});
  CHECK(a.stats().system_allocations == warm);
}

TEST_CASE("a larger block serves where the bound leaves no room, up to twice the size", "[cache]") {
  checked_arena a;
  const auto parameters = a.take(1280 * kib);
  const auto big = a.take(2 * mib);
  a.give(big);
  SECTION("below the bound each size has blocks of its own") {
    const auto other = a.take(1536 * kib);
    CHECK(a.unused_ends() == 0);
    CHECK(a.has(big));
    CHECK(a.stats().system_allocations == 3);
    a.give(other);
  }
  SECTION("at the bound it serves, and comes back as what it is") {
    const auto full = a.take(1792 * kib), more = a.take(1408 * kib);
    a.give(full), a.give(more);
    a.use({1152 * kib});
    const memory_stats before = a.stats();
    const auto other = a.take(1536 * kib);
    CHECK(other.number == full.number);  // the smallest that is large enough
    CHECK(a.unused_ends() == 256 * kib);
    const memory_stats during = a.stats();
    CHECK(during.bytes_in_use == before.bytes_in_use + 1536 * kib);
    CHECK(during.bytes_cached == before.bytes_cached - 1792 * kib);
    CHECK(during.bytes_held == before.bytes_held);
    CHECK(during.system_allocations == before.system_allocations);
    std::memset(other.at, 1, 1536 * kib);
    a.give(other);
    CHECK(a.stats().bytes_in_use == before.bytes_in_use);
    CHECK(a.stats().bytes_cached == before.bytes_cached);
    const auto again = a.take(1792 * kib);
    CHECK(again.number == full.number);
    std::memset(again.at, 2, 1792 * kib);
    a.give(again);
  }
  a.give(parameters);
}

TEST_CASE("a block of more than twice the size does not serve, and none does for a small request", "[cache]") {
  checked_arena a;
  SECTION("twice") {
    const auto parameters = a.take(2 * mib);
    a.use_in_turn({2 * mib, 2304 * kib, 2560 * kib, 2816 * kib});  // the first went back
    SECTION("more") {
      const auto b = a.take(1 * mib);
      CHECK(a.unused_ends() == 0);
      a.give(b);
    }
    SECTION("exactly") {
      const auto b = a.take(1152 * kib);
      CHECK(a.unused_ends() == 1152 * kib);
      a.give(b);
    }
    a.give(parameters);
  }
  SECTION("small") {
    a.arena.set_allowance(0);
    const auto parameters = a.take(40 * kib);
    for (const std::size_t bytes : {3000u, 3500u, 2500u, 2000u, 3300u}) {
      std::vector<checked_arena::held_block> blocks;
      for (int i = 0; i < 8; ++i) blocks.push_back(a.take(bytes));
      CHECK(a.unused_ends() == 0);
      for (const auto& b : blocks) a.give(b);
    }
    CHECK(a.stats().system_frees > 0);
    a.give(parameters);
  }
}

TEST_CASE("unused ends of larger blocks are at most a quarter of the peak", "[cache]") {
  checked_arena a;
  const std::size_t n = 12;
  a.use(std::vector<std::size_t>(n, 1 * mib));
  std::vector<checked_arena::held_block> held;
  for (std::size_t i = 0; i < n; ++i) {
    held.push_back(a.take(576 * kib));
    CHECK(a.unused_ends() <= a.stats().peak_bytes / 4);
  }
  CHECK(a.stats().bytes_in_use == n * 576 * kib);
  for (const auto& b : held) a.give(b);
  CHECK(a.stats().bytes_held == a.stats().bytes_cached);
}

TEST_CASE("the blocks longest unused go back first", "[cache]") {
  checked_arena a;
  const auto first = a.take(300 * kib), second = a.take(500 * kib), third = a.take(300 * kib);
  a.give(second), a.give(first), a.give(third);
  a.give(a.take(500 * kib));  // used again, so the latest
  a.give(a.take(704 * kib));
  const auto large = a.take(768 * kib);
  CHECK_FALSE(a.has(first));
  CHECK(a.has(second));
  a.give(large);
}

TEST_CASE("a peak is forgotten, and blocks that nobody asks for go back", "[cache]") {
  checked_arena a;
  const auto spend = [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) a.arena.release(a.arena.allocate(1000), 1000);
  };
  spend(10);
  a.use({10 * mib, 5 * mib, 1 * mib});
  spend(arena_type::lately - 100);
  CHECK(a.stats().bytes_held > 16 * mib);
  spend(arena_type::lately + 100);
  CHECK(a.stats().bytes_held <= counted_memory::allowance + kib);
  CHECK(a.system.taken.size() == 1);
  a.check();

  // Where the peak lasts, those unused go all the same.
  const auto parameters = a.take(10 * mib);
  a.use({3 * mib});
  spend(2 * arena_type::lately);
  CHECK(a.stats().bytes_held <= 10 * mib + counted_memory::allowance);
  CHECK(a.stats().bytes_in_use == 10 * mib);
  a.give(parameters);
}

TEST_CASE("an allowance raises and lifts the bound", "[cache]") {
  checked_arena a;
  a.arena.set_allowance(no_bound);
  for (std::size_t i = 1; i <= 20; ++i) a.arena.release(a.arena.allocate(i * mib), i * mib);
  CHECK(a.stats().system_frees == 0);
  CHECK(a.stats().bytes_cached > 170 * mib);
  for (std::uint64_t i = 0; i < 3 * arena_type::lately; ++i) a.arena.release(a.arena.allocate(100), 100);
  CHECK(a.stats().system_frees == 0);
  a.arena.set_allowance(20 * mib);
  CHECK(a.stats().bytes_held <= 21 * mib);
  CHECK(a.stats().bytes_held > 10 * mib);
  a.check();
}

TEST_CASE("the allowance of a device is set by name", "[cache]") {
  using D = numa<9>;
  set_cache_allowance<D>(no_bound);
  for (index_t n = 1; n <= 8; ++n) static_cast<void>(empty<std::int8_t, D>({n << 20}));
  CHECK(memory<D>().bytes_cached > 36 * mib);
  set_cache_allowance<D>(mib);
  CHECK(memory<D>().bytes_held <= 16 * mib + kib);
  CHECK(memory<D>().system_frees > 0);
  empty_cache<D>();
  CHECK(memory<D>().bytes_held == 0);
}

TEST_CASE("under a limit only blocks of their own size serve", "[cache]") {
  checked_arena a;
  a.arena.set_limit(8 * mib);
  const auto parameters = a.take(2 * mib);
  a.use({2 * mib, 2 * mib, 1792 * kib});
  const auto other = a.take(1536 * kib);
  const memory_stats s = a.stats();
  CHECK(s.bytes_held == s.bytes_in_use + s.bytes_cached);
  CHECK(s.bytes_held <= 8 * mib);
  CHECK_THROWS_AS(a.take(5 * mib), out_of_memory);
  CHECK(a.stats().bytes_in_use == s.bytes_in_use);
  a.check();
  a.give(other), a.give(parameters);
}

TEST_CASE("nothing goes back while a step is recorded, and what is too much does afterwards", "[cache]") {
  checked_arena a;
  a.use({2 * mib, 1 * mib});
  const auto from_system = [&] { return a.stats().system_frees; };
  SECTION("here") {
    const int number = a.arena.open_reserve();
    for (std::size_t i = 1; i <= 8; ++i) a.arena.release(a.arena.allocate(i * mib), i * mib);
    CHECK(from_system() == 0);
    a.arena.empty_cache();
    CHECK(from_system() == 0);
    a.arena.close_reserve();
    a.check();
    CHECK(a.stats().bytes_reserved > 10 * mib);
    a.arena.drop_reserve(number);
    a.check();
    CHECK(a.stats().bytes_reserved == 0);
    CHECK(a.stats().bytes_held <= 16 * mib);
  }
  SECTION("by this thread, on another device") {
    const std::string device = "another";
    sinter::detail::capturing() = &device;
    for (std::size_t i = 1; i <= 8; ++i) a.arena.release(a.arena.allocate(i * mib), i * mib);
    a.arena.empty_cache();
    a.arena.set_limit(mib);
    CHECK(from_system() == 0);
    sinter::detail::capturing() = nullptr;
    a.arena.set_limit(0);
    a.use({9 * mib});
    CHECK(a.stats().bytes_held <= 18 * mib);
  }
}

TEST_CASE("a reserve hands out larger blocks that it has, and gets them back whole", "[cache]") {
  checked_arena a;
  const int number = a.arena.open_reserve();
  void* const large = a.arena.allocate(1 * mib);
  a.arena.release(large, 1 * mib);
  void* const p = a.arena.allocate(700 * kib);
  CHECK(p == large);
  CHECK(a.stats().bytes_reserved == 0);
  CHECK(a.stats().bytes_in_use == 704 * kib);
  a.arena.close_reserve();
  a.arena.release(p, 700 * kib);
  CHECK(a.stats().bytes_reserved == 1 * mib);
  CHECK(a.stats().bytes_in_use == 0);
  a.arena.drop_reserve(number);
  CHECK(a.stats().bytes_cached == 1 * mib);
  a.check();
}

TEST_CASE("where the system has no more, or breaks, the cache is what is lost", "[cache]") {
  checked_arena a;
  const auto parameters = a.take(2 * mib);
  a.use({1 * mib});
  SECTION("it has no more") {
    a.system.most = a.system.bytes;
    CHECK_THROWS_AS(a.take(3 * mib), out_of_memory);
    CHECK(a.stats().bytes_held == 2 * mib);
    a.give(a.take(1 * mib));
    a.system.most = 0;
  }
  SECTION("it breaks") {
    a.system.breaks = true;
    CHECK_THROWS_AS(a.take(3 * mib), std::runtime_error);
    CHECK(a.stats().bytes_in_use == 2 * mib);
    a.give(a.take(1 * mib));
    a.system.breaks = false;
  }
  a.check();
  a.give(a.take(3 * mib));
  a.give(parameters);
}

TEST_CASE("an arena gives back all that is not in use when it ends", "[cache]") {
  system_memory system;
  void* kept = nullptr;
  {
    arena_type arena("ending", counted_memory{&system});
    static_cast<void>(arena.open_reserve());
    arena.release(arena.allocate(1000), 1000);
    arena.close_reserve();
    kept = arena.allocate(5000);
    arena.release(arena.allocate(100000), 100000);
    CHECK(system.taken.size() == 3);
  }
  CHECK(system.taken.size() == 1);
  CHECK(system.taken.count(kept) == 1);
}

TEST_CASE("a random program loses no block, gives none back twice, and none to two owners", "[cache]") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed);
    system_memory system;
    std::size_t in_use = 0;
    struct owned {
      void* at;
      std::size_t bytes;
      unsigned char mark;
    };
    std::vector<owned> held;
    {
      arena_type arena("random", counted_memory{&system});
      std::vector<int> reserves;
      bool open = false;
      int wrong = 0;
      const auto free_one = [&](std::size_t i) {
        const owned b = held[i];
        const auto* const bytes = static_cast<const unsigned char*>(b.at);
        wrong += std::any_of(bytes, bytes + b.bytes, [&](unsigned char c) { return c != b.mark; });
        arena.release(b.at, b.bytes);
        in_use -= arena_type::block_size(b.bytes);
        held[i] = held.back();
        held.pop_back();
      };
      for (int i = 0; i < 6000; ++i) {
        const auto what = random() % 1000;
        const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 17));
        if (what < 520 || held.size() < 4) {
          system.most = random() % 50 == 0 ? system.bytes + 1 : 0;
          try {
            void* const p = arena.allocate(bytes);
            held.push_back({p, bytes, static_cast<unsigned char>(i)});
            std::memset(p, held.back().mark, bytes);
            in_use += arena_type::block_size(bytes);
          } catch (const out_of_memory&) {
          }
          system.most = 0;
        } else if (what < 985) {
          free_one(random() % held.size());
        } else if (what < 988) {
          if (!open) reserves.push_back(arena.open_reserve());
          else arena.close_reserve();
          open = !open;
        } else if (what < 990) {
          if (!open && !reserves.empty()) {
            arena.drop_reserve(reserves.back());
            reserves.pop_back();
          }
        } else if (what < 992) {
          arena.empty_cache();
        } else if (what < 994) {
          arena.set_limit(random() % 2 == 0 ? 0 : in_use + 300000);
        } else if (what < 996) {
          arena.set_allowance(random() % 2 == 0 ? 0 : counted_memory::allowance);
        } else {
          for (int k = 0; k < 200 && !held.empty(); ++k) free_one(random() % held.size());
        }
        const memory_stats s = arena.stats();
        wrong += s.bytes_in_use != in_use || s.bytes_held != system.bytes;
        wrong += s.system_allocations - s.system_frees != system.taken.size() || system.strangers != 0;
        wrong += s.bytes_in_use + s.bytes_cached + s.bytes_reserved > s.bytes_held;
        wrong += !open && s.bytes_in_use + s.bytes_cached > bound(s.peak_bytes);
        wrong += held.empty() && s.bytes_cached + s.bytes_reserved != s.bytes_held;
      }
      CHECK(wrong == 0);
      if (open) arena.close_reserve();
    }
    CHECK(system.strangers == 0);
    CHECK(system.taken.size() == held.size());
    for (const owned& b : held) CHECK(system.taken.count(b.at) == 1);
  }
}

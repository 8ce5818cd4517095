// tests/cpu/threads_test.cpp: the thread pool runs every task once, never deadlocks, and ends cleanly.
#include "sinter/cpu/threads.hpp"

#include <time.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../catch.hpp"

using sinter::index_t;
using sinter::cpu_impl::thread_pool;

namespace {

// Runs after the pools are closed: a static that is constructed before the first use of a pool is destroyed after it.
struct late_user {
  bool armed = false;
  ~late_user() {
    if (!armed) return;
    std::atomic<int> calls{0};
    for (thread_pool* pool : {&sinter::cpu_impl::host_pool(), &sinter::cpu_impl::numa_pool(0)})
      pool->parallel_for(100, [&](index_t) { ++calls; });
    if (calls != 200) std::_Exit(3);
  }
};
late_user used_at_exit;

double processor_seconds(clockid_t of) {
  timespec t;
  clock_gettime(of, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Waits until as many as `wanted` tasks are in their pool at once; false where one of them alone has used the processor
// for long.
bool meet(std::atomic<int>& inside, int wanted) {
  ++inside;
  const double begin = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
  while (inside < wanted && processor_seconds(CLOCK_THREAD_CPUTIME_ID) < begin + 20) std::this_thread::yield();
  return inside >= wanted;
}

}  // namespace

TEST_CASE("a pool runs every task exactly once", "[pool]") {
  for (const int threads : {1, 2, 3, 8}) {
    thread_pool pool(threads);
    for (const index_t tasks : {0, 1, 2, 3, 7, 64, 1000, 100000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      pool.parallel_for(tasks, [&](index_t task) { ++runs[static_cast<std::size_t>(task)]; });
      index_t wrong = 0;
      for (const auto& n : runs) wrong += n != 1;
      REQUIRE(wrong == 0);
    }
  }
}

TEST_CASE("what tasks write is visible when run returns, run after run", "[pool]") {
  thread_pool pool(3);
  std::vector<index_t> cells(50);
  for (index_t round = 1; round <= 5000; ++round) {
    const index_t tasks = round % 50 + 1;
    pool.parallel_for(tasks, [&](index_t task) { cells[static_cast<std::size_t>(task)] = task + round; });
    index_t sum = 0;
    for (index_t task = 0; task < tasks; ++task) sum += cells[static_cast<std::size_t>(task)];
    REQUIRE(sum == tasks * round + tasks * (tasks - 1) / 2);
  }
}

TEST_CASE("several threads of a pool work at once", "[pool]") {
  thread_pool pool(3);
  std::atomic<int> inside{0}, met{0};
  pool.parallel_for(3, [&](index_t) { met += meet(inside, 3); });
  REQUIRE(met == 3);
}

TEST_CASE("a pool that has slept wakes up", "[pool]") {
  thread_pool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> inside{0}, met{0};
    pool.parallel_for(2, [&](index_t) { met += meet(inside, 2); });
    REQUIRE(met == 2);
  }
}

TEST_CASE("an idle pool uses no processor time", "[pool]") {
  thread_pool pool(4);
  pool.parallel_for(64, [](index_t) {});
  // Workers that spin use a second soon; those that sleep leave a fifth of a second without any.
  const double begin = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
  double before = begin, used = 1;
  while (used > 0.001 && before < begin + 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double now = processor_seconds(CLOCK_PROCESS_CPUTIME_ID);
    used = now - before;
    before = now;
  }
  REQUIRE(used <= 0.001);
}

TEST_CASE("nested runs, also through another pool, end", "[pool]") {
  thread_pool outer(3), inner(2);
  std::atomic<int> calls{0};
  outer.parallel_for(6, [&](index_t) {
    outer.parallel_for(
        5, [&](index_t) { inner.parallel_for(4, [&](index_t) { outer.parallel_for(3, [&](index_t) { ++calls; }); }); });
  });
  REQUIRE(calls == 6 * 5 * 4 * 3);
}

TEST_CASE("several user threads share one pool", "[pool]") {
  thread_pool pool(3);
  std::atomic<index_t> sum{0};
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&] {
      for (int round = 0; round < 300; ++round) pool.parallel_for(20, [&](index_t task) { sum += task; });
    });
  for (std::thread& user : users) user.join();
  REQUIRE(sum == 4 * 300 * 190);
}

TEST_CASE("the first exception reaches the caller after all tasks have run", "[pool]") {
  for (const int threads : {1, 3}) {
    thread_pool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> runs{0};
      std::string text;
      try {
        pool.parallel_for(40, [&](index_t task) {
          ++runs;
          if (task % 10 == 3) throw std::runtime_error("task " + std::to_string(task % 10));
        });
      } catch (const std::runtime_error& e) {
        text = e.what();
      }
      REQUIRE(text == "task 3");
      REQUIRE(runs == 40);
      pool.parallel_for(40, [&](index_t) { ++runs; });
      REQUIRE(runs == 80);
    }
  }
}

TEST_CASE("a pool can be resized, even from one of its tasks and while others use it", "[pool]") {
  thread_pool pool(1);
  std::atomic<int> runs{0};
  for (const int threads : {2, 5, 1, 3}) {
    pool.resize(threads);
    REQUIRE(pool.size() == threads);
    pool.parallel_for(100, [&](index_t) { ++runs; });
  }
  REQUIRE(runs == 400);
  pool.parallel_for(10, [&](index_t) { pool.resize(2); });
  REQUIRE(pool.size() == 2);
  std::thread other([&] {
    for (int threads = 1; threads < 40; ++threads) pool.resize(threads % 4 + 1);
  });
  for (int round = 0; round < 200; ++round) pool.parallel_for(10, [&](index_t) { ++runs; });
  other.join();
  REQUIRE(runs == 2400);
}

#if defined(__SSE2__) || defined(__aarch64__)
TEST_CASE("tasks round as the thread that calls run, whichever thread they run on", "[pool]") {
  thread_pool pool(3);
  pool.parallel_for(3, [](index_t) {});
  const auto sums = [&](int mode) {
    const int before = std::fegetround();
    std::fesetround(mode);
    std::atomic<int> inside{0}, above{0};
    pool.parallel_for(3, [&](index_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();  // each on a thread of its own
      volatile float one = 1, little = 1e-10f;
      above += one + little > 1;
    });
    std::fesetround(before);
    return above.load();
  };
  CHECK(sums(FE_UPWARD) == 3);
  CHECK(sums(FE_TONEAREST) == 0);
  CHECK(sums(FE_UPWARD) == 3);
  CHECK(sums(FE_TOWARDZERO) == 0);
}

TEST_CASE("denormal numbers are flushed on all threads of a pool, or on none", "[pool]") {
  thread_pool pool(3);
  pool.parallel_for(3, [](index_t) {});
  const auto before = sinter::cpu_impl::detail::float_control();
#if defined(__SSE2__)
  const std::uint64_t flush = 0x8040;
#else
  const std::uint64_t flush = std::uint64_t{1} << 24;
#endif
  const auto zeros = [&] {
    std::atomic<int> inside{0}, n{0};
    pool.parallel_for(3, [&](index_t) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
      volatile float small = 1e-38f;
      small = small * 0.01f;
      n += small == 0;
    });
    return n.load();
  };
  CHECK(zeros() == 0);
  sinter::cpu_impl::detail::set_float_control(before | flush);
  const int flushed = zeros();
  sinter::cpu_impl::detail::set_float_control(before);
  CHECK(flushed == 3);
  CHECK(zeros() == 0);
}
#endif

TEST_CASE("a pool needs at least one thread", "[pool]") {
  REQUIRE_THROWS_AS(thread_pool(0), sinter::value_error);
  REQUIRE_THROWS_AS(thread_pool(4097), sinter::value_error);
  thread_pool pool(2);
  REQUIRE_THROWS_AS(pool.resize(-1), sinter::value_error);
  REQUIRE_THROWS_AS(sinter::set_num_threads(0), sinter::value_error);
  REQUIRE(pool.size() == 2);
}

TEST_CASE("set_num_threads sets the pool of device cpu", "[pool]") {
  const int before = sinter::num_threads();
  REQUIRE(before >= 1);
  sinter::set_num_threads(3);
  REQUIRE(sinter::num_threads() == 3);
  REQUIRE(sinter::cpu_impl::host_pool().size() == 3);
  sinter::set_num_threads(before);
}

TEST_CASE("every NUMA node number has a pool of its own, whether the machine has the node or not", "[pool]") {
  using sinter::cpu_impl::numa_pool;
  used_at_exit.armed = true;
  REQUIRE(&numa_pool(0) == &numa_pool(0));
  REQUIRE(&numa_pool(0) != &numa_pool(1));
  REQUIRE(&numa_pool(1) != &sinter::cpu_impl::host_pool());
  for (const int node : {0, 1, 999}) {
    std::atomic<int> runs{0};
    numa_pool(node).parallel_for(100, [&](index_t) { ++runs; });
    REQUIRE(runs == 100);
  }
}

TEST_CASE("the environment decides the number of threads", "[pool]") {
  using sinter::cpu_impl::detail::default_threads;
  const char* const set = std::getenv("SINTER_NUM_THREADS");
  const std::string before = set == nullptr ? "" : set;
  unsetenv("SINTER_NUM_THREADS");
  const int usable = default_threads(-1);
  REQUIRE(usable >= 1);
  setenv("SINTER_NUM_THREADS", "", 1);
  CHECK(default_threads(-1) == usable);
  for (const char* text : {"0", "-2", "three", "4x", "99999999999"}) {
    setenv("SINTER_NUM_THREADS", text, 1);
    CHECK_THROWS_WITH(default_threads(-1), Catch::Contains("SINTER_NUM_THREADS is '" + std::string(text) + "'"));
  }
  setenv("SINTER_NUM_THREADS", "7", 1);
  REQUIRE(default_threads(-1) == 7);
  if (set == nullptr) unsetenv("SINTER_NUM_THREADS");
  else setenv("SINTER_NUM_THREADS", before.c_str(), 1);
}

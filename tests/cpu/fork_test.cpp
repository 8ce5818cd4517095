// tests/cpu/fork_test.cpp: a forked child computes, loads and ends, whatever threads its parent had.
#if !defined(__SANITIZE_THREAD__)  // which does not support threads in a child
#include "../catch.hpp"

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>

using namespace sinter;

namespace {

bool in_child = false;

/// Whether f() is true in a forked child, which then leaves by exit() and ends as it should.
template <class F>
bool holds_in_child(const F& f) {
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    in_child = true;
    alarm(300);  // only where it hangs
    int code = 1;
    try {
      code = f() ? 0 : 1;
    } catch (...) {
    }
    std::exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Whether two threads of the pool are in its tasks at once.
bool two_at_once(cpu_impl::thread_pool& pool) {
  std::atomic<int> inside{0};
  pool.parallel_for(2, [&](index_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  return true;
}

struct threads {
  explicit threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~threads() { set_num_threads(before); }
  int before;
};

struct numbers {
  index_t size() const { return 40; }
  sample<float, float> get(index_t i) const { return {static_cast<float>(i), static_cast<float>(-i)}; }
};

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
// What only the threads of the parent held is out of reach in the child.
extern "C" int __lsan_is_turned_off() { return in_child; }
#endif

TEST_CASE("a child of a process with a running pool ends, and starts threads of its own", "[fork]") {
  const threads four(4);
  const auto x = ones<float>({300000});
  const auto y = eval(exp(x));
  const auto n = eval(exp(ones<float, numa<0>>({300000})));
  CHECK(holds_in_child([] { return true; }));
  CHECK(holds_in_child([&] { return num_threads() == 4 && two_at_once(cpu_impl::host_pool()); }));
  CHECK(holds_in_child([&] { return all(exp(x) == y).item(); }));
  CHECK(holds_in_child([&] { return eval(exp(n)).shape() == n.shape(); }));
  CHECK(holds_in_child([&] {
    set_num_threads(2);
    return all(exp(x) == y).item() && holds_in_child([&] { return all(exp(x) == y).item(); });
  }));
  CHECK(all(exp(x) == y).item());
  CHECK(two_at_once(cpu_impl::host_pool()));
}

TEST_CASE("a child is whole although other threads computed and allocated while it was forked", "[fork][threads]") {
  const threads three(3);
  std::atomic<bool> stop{false};
  std::thread others[2];
  for (std::thread& other : others)
    other = std::thread([&] {
      while (!stop) {
        const auto x = eval(ones<float>({50000}) + 1);
        const auto y = ones<float>({1, 2, 3});
      }
    });
  for (int i = 0; i < 20; ++i)
    CHECK(holds_in_child([] {
      const auto x = eval(ones<float>({50000}) + 1);
      return x(49999) == 2 && two_at_once(cpu_impl::host_pool());
    }));
  stop = true;
  for (std::thread& other : others) other.join();
}

TEST_CASE("a child goes on with a loop over a loader, or ends it, and the parent is not disturbed", "[fork]") {
  data_loader loader(numbers(), {.batch_size = 4, .shuffle = true, .seed = 3});
  for (const int taken : {0, 1, 5}) {
    auto at = std::optional(loader.begin());
    for (int i = 0; i < taken; ++i) ++*at;
    CHECK(holds_in_child([] { return true; }));
    CHECK(holds_in_child([&] { return at.reset(), true; }));
    CHECK(holds_in_child([&] {
      float total = 0;
      int batches = 0;
      for (; !(*at == std::default_sentinel); ++*at, ++batches)
        for (index_t i = 0; i < 4; ++i) total += (**at).inputs(i);
      return batches == 10 - taken && (taken != 0 || total == 780);
    }));
    int batches = 0;
    for (; !(*at == std::default_sentinel); ++*at) ++batches;
    CHECK(batches == 10 - taken);
  }
}

TEST_CASE("a child gets what was on its way to another device", "[fork]") {
  const auto x = arange<float>(100000);
  auto coming = x.to_async<numa<1>>(), unused = x.to_async<numa<1>>();
  CHECK(holds_in_child([&] { return coming.get()(99999) == 99999; }));
  CHECK(coming.get()(99999) == 99999);
}
#endif

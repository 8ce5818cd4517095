// tests/ranks/run_checkpoint_kills_test.cpp: a run that is killed again and again ends as one that never was.
#include "../catch.hpp"
#include "../io/folder.hpp"
#include "training_run.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <thread>

using namespace sinter;

namespace {

using run = training_run<optim::adam>;
constexpr index_t steps = 40;

/// Trains to the end and saves after each step; loads first what was saved before.
std::string trained(const run_checkpoint& file, index_t write_killed_at, rlim_t bytes) {
  run r(3, {.lr = 0.05});
  if (file.exists()) r.load(file);
  index_t saves = 0;
  if (r.step < steps)
    r.train(steps, [&](const run& now) {
      if (saves++ == write_killed_at) {  // a write behind so many bytes ends the process
        const rlimit limit{bytes, bytes}, no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      now.save(file);
    });
  return bits_of(r.model);
}

}  // namespace

TEST_CASE("a run killed 50 times at random, also in saves, ends with the bits of one that never was",
          "[parallel][fork]") {
  const folder dir;
  const run_checkpoint file(dir.file("run.ckpt"));
  const auto start = std::chrono::steady_clock::now();
  const std::string expected = trained(run_checkpoint(dir.file("alone")), -1, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const auto size = static_cast<index_t>(std::filesystem::file_size(dir.file("alone")));
  std::filesystem::remove(dir.file("alone"));

  generator gen(20);
  const auto below = [&](index_t n) { return randint(gen, 0, n, {1})(0); };
  int kills = 0, in_saves = 0, ended = 0;
  index_t reached = 0;
  while (kills < 50) {
    const bool by_write = below(2) == 0;
    const index_t killed_at = by_write ? below(steps / 4) : -1;
    const auto bytes = static_cast<rlim_t>(below(size));
    const std::chrono::microseconds wait(below(whole.count() / 3 + 1));
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int code = 1;
      try {
        code = trained(file, killed_at, bytes) == expected ? 0 : 2;
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      ::_exit(code);
    }
    if (!by_write) {
      std::this_thread::sleep_for(wait);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) {
      REQUIRE(WEXITSTATUS(status) == 0);  // 1: an error; 2: other bits
      ++ended;
      std::filesystem::remove(file.path());
      reached = 0;
      continue;
    }
    REQUIRE((WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGXFSZ));
    ++kills;
    const auto names = dir.names();
    CHECK(names.size() <= 2);  // the checkpoint, and what one killed save has left
    in_saves += names.size() == (file.exists() ? 2 : 1);
    run loaded(8, {.lr = 0.5});
    if (file.exists()) loaded.load(file);
    CHECK(loaded.step >= reached);  // no save is lost
    reached = loaded.step;
  }
  CHECK(in_saves > 10);
  CHECK(ended > 0);
  CHECK((trained(file, -1, 0) == expected));
  run(1, {}).save(file);
  CHECK(dir.names() == std::vector<std::string>{"run.ckpt"});
}

// tests/parallel/schedule_test.cpp: schedules end, and stages that only sleep keep to them whatever their timing.
#include <sinter/parallel/pipeline_report.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../catch.hpp"

using namespace sinter;
using nn::direction;
using nn::schedule;

namespace {

std::string text_of(const schedule::actions& list) {
  std::string text;
  for (const nn::stage_action& a : list)
    text +=
        (text.empty() ? "" : " ") + std::string(a.way == direction::forward ? "F" : "B") + std::to_string(a.microbatch);
  return text;
}
/// The list that text_of() shows.
schedule::actions list_of(const std::string& text) {
  schedule::actions list;
  for (std::size_t i = 0; i < text.size(); i += 3)
    list.push_back({text[i] == 'F' ? direction::forward : direction::backward, text[i + 1] - '0'});
  return list;
}
schedule schedule_of(const std::vector<std::string>& texts) {
  std::vector<schedule::actions> lists;
  for (const std::string& t : texts) lists.push_back(list_of(t));
  return schedule(std::move(lists));
}

}  // namespace

TEST_CASE("schedules are the lists of the papers", "[parallel]") {
  const schedule alternating = schedule::one_f_one_b(3, 4);
  CHECK(text_of(alternating.of(0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text_of(alternating.of(1)) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(text_of(alternating.of(2)) == "F0 B0 F1 B1 F2 B2 F3 B3");
  for (const int stage : {0, 1}) CHECK(text_of(schedule::gpipe(2, 3).of(stage)) == "F0 F1 F2 B0 B1 B2");
  CHECK(text_of(schedule::one_f_one_b(4, 1).of(0)) == "F0 B0");
}

TEST_CASE("gpipe and one_f_one_b end for all numbers, with the activations and the bubble of the formula",
          "[parallel]") {
  for (int p = 1; p <= 8; ++p) {
    for (index_t m = 1; m <= 17; ++m) {
      INFO(p << " stages, " << m << " microbatches");
      const schedule all_first = schedule::gpipe(p, m), alternating = schedule::one_f_one_b(p, m);
      const double formula = (p - 1) / static_cast<double>(m + p - 1);
      for (const double backward : {1., 2., 0.5}) {
        CHECK(std::abs(all_first.simulated(1, backward).bubble - formula) < 1e-12);
        CHECK(std::abs(alternating.simulated(1, backward).bubble - formula) < 1e-12);
      }
      for (int i = 0; i < p; ++i) {
        CHECK(all_first.in_flight(i) == m);
        CHECK(alternating.in_flight(i) == std::min<index_t>(m, p - i));
      }
      CHECK(alternating.microbatches() == m);
      CHECK(alternating.serial_order().size() == static_cast<std::size_t>(2 * m * p));
    }
  }
}

TEST_CASE("a schedule is simulated with the times of each action", "[parallel]") {
  const schedule plan = schedule::gpipe(2, 2);  // F0 F1 B0 B1
  const nn::schedule_times t = plan.simulated({{1, 1, 2, 2}, {2, 2, 1, 1}});
  CHECK(t.span == 10);  // stage 1: 1 to 5 forward, to 7 backward; stage 0: 6 to 8, 8 to 10
  CHECK(t.busy == 12);
  CHECK(std::abs(t.bubble - 0.4) < 1e-15);
}

TEST_CASE("schedules that are wrong or never end are refused", "[parallel]") {
  CHECK_NOTHROW(schedule_of({"F0 F1 B0 B1", "F0 B0 F1 B1"}));
  CHECK_THROWS_WITH(schedule_of({"F0 B0 F1 B1", "F0 F1 B0 B1"}),
                    Catch::Contains("wait for one another for ever: stage 0 to run microbatch 0 backward, stage 1 to "
                                    "run microbatch 1 forward"));
  CHECK_THROWS_WITH(schedule_of({"F0 F1 B0 B1", "F1 F0 B0 B1"}),
                    Catch::Contains("stage 1 runs microbatch 1 forward when microbatch 0 arrives"));
  CHECK_THROWS_WITH(schedule_of({"F0 F1 B1 B0", "F0 F1 B0 B1"}),
                    Catch::Contains("stage 0 runs microbatch 1 backward when microbatch 0 arrives"));
  CHECK_THROWS_WITH(schedule_of({"F0 B0", "B0 F0"}), Catch::Contains("stage 1 runs microbatch 0 backward out of turn"));
  CHECK_THROWS_WITH(schedule_of({"F0 F0 B0 B0"}), Catch::Contains("microbatch 0 forward out of turn"));
  CHECK_THROWS_WITH(schedule_of({"F0 B0 F1 B1", "F0 B0"}), Catch::Contains("stage 1 does not run microbatch 1"));
  CHECK_THROWS_WITH(schedule_of({"F0 B0", "F0 B0 F1 B1"}),
                    Catch::Contains("stage 1 runs microbatch 1, but stage 0 runs only 1, numbered from 0"));
  CHECK_THROWS_AS(schedule_of({"F0 B0 F1"}), value_error);
  CHECK_THROWS_AS(schedule_of({"F0"}), value_error);
  CHECK_THROWS_AS(schedule_of({""}), value_error);
  CHECK_THROWS_AS(schedule_of({}), value_error);
  // Queues of two places: microbatches 3 and 4 wait in one, the gradients of 0 and 1 in the other.
  CHECK_NOTHROW(schedule_of({"F0 F1 F2 F3 F4 B0 B1 B2 B3 B4", "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"}));
  CHECK_THROWS_WITH(schedule_of({"F0 F1 F2 F3 F4 F5 B0 B1 B2 B3 B4 B5", "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5"}),
                    Catch::Contains("stage 0 to run microbatch 5 forward, stage 1 to run microbatch 2 backward"));
  CHECK_THROWS_WITH(schedule::gpipe(0, 3), "schedule: the number of stages is 0; pass 1 or more");
  CHECK_THROWS_AS(schedule::one_f_one_b(2, 0), value_error);
}

namespace {

/// A stage that computes nothing.
struct sleeping final : detail::stage_work {
  schedule::actions taken, sent;
  double forward = 0, backward = 0;  ///< seconds
  index_t held = 0, most = 0;

  void take(nn::stage_action a) override {
    taken.push_back(a);
    if (a.way == direction::forward) most = std::max(most, ++held);
  }
  void compute(nn::stage_action a) override {
    const double seconds = a.way == direction::forward ? forward : backward;
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    if (a.way == direction::backward) --held;
  }
  void send(nn::stage_action a) override { sent.push_back(a); }
};

struct sleepers {
  explicit sleepers(int stages) : stage(static_cast<std::size_t>(stages)) {}
  std::vector<detail::stage_work*> list() {
    std::vector<detail::stage_work*> all;
    for (sleeping& s : stage) all.push_back(&s);
    return all;
  }
  std::vector<sleeping> stage;
};

struct hook {
  explicit hook(void (*f)(int, int)) { detail::stage_hook() = f; }
  ~hook() { detail::stage_hook() = nullptr; }
};

/// What disturbs a run, all of it a function of the seed.
namespace disturbance {

std::uint64_t seed;
int failing_stage, failing_point;  ///< -1: none

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
void act(int stage, int point) {
  const std::uint64_t number =
      mixed(mixed(seed + static_cast<std::uint64_t>(stage) * 1000003) + static_cast<std::uint64_t>(point));
  if (number % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(number / 3 % 200));
  if (stage == failing_stage && point == failing_point) throw value_error("injected");
}

}  // namespace disturbance

/// Ends the program where it hangs, and says how to see it again.
class watchdog {
 public:
  explicit watchdog(std::uint64_t seed)
      : thread_([this, seed] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, std::chrono::minutes(5), [this] { return done_; })) return;
          std::fprintf(stderr, "stages wait for one another; seed %llu\n", static_cast<unsigned long long>(seed));
          std::_Exit(1);
        }) {}
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("random delays and errors: no run hangs, and an error comes again from its seed", "[parallel]") {
  const hook disturb(disturbance::act);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const watchdog guard(seed);
    disturbance::seed = seed;
    const auto number = [&](std::uint64_t which, std::uint64_t below) {
      return static_cast<int>(disturbance::mixed(seed * 64 + which) % below);
    };
    const int p = 1 + number(0, 8);
    const index_t m = 1 + number(1, 17);
    const schedule plan = number(2, 2) == 0 ? schedule::gpipe(p, m) : schedule::one_f_one_b(p, m);
    cpu_impl::stage_threads threads(std::vector<int>(static_cast<std::size_t>(p), -1));
    const bool fails = number(3, 3) == 0;
    for (int repeat = 0; repeat < (fails ? 2 : 1); ++repeat) {
      disturbance::failing_stage = fails ? number(4, static_cast<std::uint64_t>(p)) : -1;
      disturbance::failing_point = number(5, static_cast<std::uint64_t>(4 * m));
      sleepers all(p);
      detail::schedule_run run(plan, all.list());
      run.run(threads);
      REQUIRE(static_cast<bool>(run.failure) == fails);
      if (!fails) break;
      CHECK(run.failed_stage == disturbance::failing_stage);
      CHECK(run.failed_action == plan.of(run.failed_stage)[static_cast<std::size_t>(disturbance::failing_point / 2)]);
      CHECK_THROWS_WITH(std::rethrow_exception(run.failure), "injected");
    }
    disturbance::failing_stage = -1;
    sleepers all(p);
    detail::schedule_run run(plan, all.list());
    run.run(threads);  // works, also after an error
    REQUIRE_FALSE(run.failure);
    for (int i = 0; i < p; ++i) {
      const sleeping& s = all.stage[static_cast<std::size_t>(i)];
      CHECK(s.taken == plan.of(i));
      CHECK(s.sent == plan.of(i));
      CHECK(s.most == plan.in_flight(i));
    }
  }
}

TEST_CASE("eight sleeping stages: times add up, and no run is faster than its simulation", "[parallel]") {
  const int p = 8;
  const index_t m = 12;
  for (const auto& plan : {schedule::gpipe(p, m), schedule::one_f_one_b(p, m)}) {
    sleepers all(p);
    nn::pipeline_report r;
    r.samples = 2 * m;
    for (int i = 0; i < p; ++i) {
      all.stage[static_cast<std::size_t>(i)].forward = i == 5 ? 2e-3 : 1e-3;
      all.stage[static_cast<std::size_t>(i)].backward = 2e-3;
      r.stages.emplace_back();
    }
    cpu_impl::stage_threads threads(std::vector<int>(p, -1));
    detail::schedule_run run(plan, all.list());
    run.run(threads);
    REQUIRE_FALSE(run.failure);
    nn::detail::fill_times(r, plan, run);
    CHECK(r.bubble >= r.bubble_simulated - 1e-9);
    CHECK(r.bubble_simulated > 0);
    CHECK(std::abs(r.bubble_formula - 7. / 19) < 1e-15);
    CHECK(r.seconds >= 12 * (2e-3 + 2e-3));  // of the slowest stage
    CHECK(r.latency >= 9e-3);
    CHECK(std::abs(r.throughput * r.seconds - 24) < 1e-9);
    double busy = 0;
    for (const nn::stage_report& s : r.stages) {
      CHECK(s.busy >= 12 * 3e-3);
      CHECK(s.idle >= s.copies);
      CHECK(std::abs(s.busy + s.idle - r.seconds) < 1e-9);
      CHECK(std::abs((s.forward + s.backward) * 12 - s.busy) < 1e-9);
      busy += s.busy;
    }
    CHECK(std::abs(r.bubble - (1 - busy / (8 * r.seconds))) < 1e-12);
  }
}

TEST_CASE("threads of stages: copies have their own, two callers take turns", "[parallel]") {
  cpu_impl::stage_threads threads({-1, -1});
  cpu_impl::stage_threads copy = threads;
  const auto ids = [](cpu_impl::stage_threads& t) {
    std::vector<std::thread::id> all(2);
    CHECK(t.run([&](int stage) { all[static_cast<std::size_t>(stage)] = std::this_thread::get_id(); }));
    return all;
  };
  const auto first = ids(threads), again = ids(threads), other = ids(copy);
  CHECK(first == again);
  CHECK(first[0] != first[1]);
  CHECK(first[0] != other[0]);
  std::atomic<int> inside{0};
  bool alone = true;
  const auto work = [&] {
    for (int i = 0; i < 50; ++i)
      threads.run([&](int) {
        if (++inside > 2) alone = false;
        --inside;
      });
  };
  std::thread second(work);
  work();
  second.join();
  CHECK(alone);
}

TEST_CASE("where there are no threads a schedule runs on the caller's", "[parallel]") {
  for (const auto& plan : {schedule::gpipe(3, 5), schedule::one_f_one_b(4, 3)}) {
    sleepers all(plan.stages());
    detail::schedule_run run(plan, all.list());
    run.run_serially();
    REQUIRE_FALSE(run.failure);
    for (int i = 0; i < plan.stages(); ++i) {
      CHECK(all.stage[static_cast<std::size_t>(i)].sent == plan.of(i));
      CHECK(all.stage[static_cast<std::size_t>(i)].most == plan.in_flight(i));
    }
  }
}

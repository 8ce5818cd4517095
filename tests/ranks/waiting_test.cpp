// tests/ranks/waiting_test.cpp: ranks that wait for each other for ever, over threads and sockets, and those that do
// not; and whom a timeout names.
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <list>
#include <thread>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;
using namespace std::chrono_literals;
using failure = communication_failure;

namespace {

/// What a rank of a case has thrown; no text where it has thrown nothing.
struct seen {
  std::string text;
  failure kind = failure::backend;
  int peer = -1;
};

/// One case: what each rank does. `away`: a rank that makes no call until the others have failed.
template <class C>
struct scene_of {
  std::string name;
  int size;
  std::function<void(C&)> run;
  int away = -1;
  std::vector<seen> ranks = {};
};

template <class C>
void take_part(scene_of<C>& scene, C& ranks, std::atomic<int>& failed) {
  const int me = ranks.rank();
  if (me == scene.away) {
    while (failed < scene.size - 1) std::this_thread::sleep_for(1ms);
    return;
  }
  try {
    scene.run(ranks);
  } catch (const communication_error& e) {
    scene.ranks[std::size_t(me)] = {e.what(), e.kind(), e.peer()};
  } catch (const std::exception& e) {
    scene.ranks[std::size_t(me)] = {std::string("no communication_error: ") + e.what()};
  }
  ++failed;
}

/// All scenes, some at a time: they mostly wait.
template <class C>
void play_all(std::list<scene_of<C>>& scenes, std::chrono::duration<double> timeout) {
  char name[] = "/tmp/sinter_waits_XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  ::setenv("SINTER_COMM_SECRET", "a secret of the tests", 1);
  std::vector<std::function<void()>> jobs;
  int number = 0;
  for (scene_of<C>& scene : scenes) {
    scene.ranks.resize(std::size_t(scene.size));
    const std::string address = std::string("unix:") + name + "/" + std::to_string(number++);
    jobs.push_back([&scene, address, timeout] {
      std::atomic<int> failed{0};
      if constexpr (std::is_same_v<C, thread_communicator>) {
        run_ranks(scene.size, {.timeout = timeout}, [&](thread_communicator ranks) {
          take_part(scene, ranks, failed);
          while (failed < scene.size - (scene.away < 0 ? 0 : 1)) std::this_thread::sleep_for(1ms);
        });
      } else {
        std::vector<std::thread> threads;
        for (int r = 0; r < scene.size; ++r)
          threads.emplace_back([&, r] {
            socket_communicator ranks({.rank = r, .size = scene.size, .address = address, .timeout = timeout});
            take_part(scene, ranks, failed);
            while (failed < scene.size - (scene.away < 0 ? 0 : 1)) std::this_thread::sleep_for(1ms);
          });
        for (std::thread& t : threads) t.join();
      }
    });
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 24; ++i)
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < jobs.size(); at = next++) jobs[at]();
    });
  for (std::thread& t : workers) t.join();
  std::filesystem::remove_all(name);
}

template <class C>
using a_call = std::pair<const char*, std::function<void(C&)>>;

/// The collectives, of which each is another one than the others.
template <class C>
std::vector<a_call<C>> collectives() {
  const auto x = [] { return ones<float>({12}); };
  return {{"all_reduce", [=](C& c) { c.all_reduce(x(), reduction::sum, "w").get(); }},
          {"broadcast", [=](C& c) { c.broadcast(x(), 0, "w").get(); }},
          {"all_gather", [=](C& c) { c.all_gather(x(), "w").get(); }},
          {"reduce_scatter", [=](C& c) { c.reduce_scatter(x(), "w").get(); }},
          {"barrier", [](C& c) { c.barrier("w").get(); }},
          {"split", [](C& c) { c.split(0, c.rank()); }}};
}
template <class C>
void receive_from(C& c, int from) {
  c.template receive<float>(3, from, 5).get();
}

/// Each pair of kinds of calls, with each rank as the one that makes the other call.
template <class C>
std::list<scene_of<C>> wrong_programs() {
  std::list<scene_of<C>> all;
  for (int R = 2; R <= 4; ++R)
    for (int wrong = 0; wrong < R; ++wrong) {
      const std::string where = " of " + std::to_string(R) + " ranks, " + std::to_string(wrong) + " is the other one";
      const auto add = [&](const std::string& name, auto usual, auto other) {
        all.push_back({name + where, R, [=](C& c) {
                         c.barrier("begin").get();
                         c.rank() == wrong ? other(c) : usual(c);
                       }});
      };
      for (const auto& [name, usual] : collectives<C>()) {
        for (const auto& [other_name, other] : collectives<C>())
          if (std::string(name) != other_name) add(std::string(name) + " against " + other_name, usual, other);
        add(std::string(name) + " against receive", usual, [=](C& c) { receive_from(c, (wrong + 1) % R); });
        add(std::string("receive against ") + name, [=](C& c) { receive_from(c, wrong); }, usual);
        // The message that was begun before does not help.
        add(std::string(name) + " against a second receive", usual, [=](C& c) {
          auto first = c.template receive<float>(3, (wrong + 1) % R, 4);
          receive_from(c, (wrong + 1) % R);
        });
      }
      add(
          "receive against receive", [=](C& c) { receive_from(c, wrong); },
          [=](C& c) { receive_from(c, (wrong + 1) % R); });
      add(
          "receive around a ring", [=](C& c) { receive_from(c, (c.rank() + 1) % R); },
          [=](C& c) { receive_from(c, (c.rank() + 1) % R); });
      add("receive from itself", [](C& c) { c.barrier("end").get(); }, [=](C& c) { receive_from(c, wrong); });
    }
  return all;
}

template <class C>
void check_wrong_programs() {
  auto scenes = wrong_programs<C>();
  play_all(scenes, 60s);
  int told = 0;
  for (const auto& scene : scenes)
    for (std::size_t r = 0; r < scene.ranks.size(); ++r) {
      const seen& s = scene.ranks[r];
      INFO(scene.name << ", rank " << r << ": " << s.text);
      const bool is_told = s.kind == failure::mismatch && s.peer >= 0 && has(s.text, "mismatch: rank ") &&
                           (has(s.text, ", and rank ") || has(s.text, ": none of this can end"));
      if (!is_told) FAIL();
      ++told;
    }
  CHECK(told > 500);
}

/// Messages on their way while other calls wait: each of them can end.
template <class C>
std::list<scene_of<C>> right_programs() {
  std::list<scene_of<C>> all;
  const auto slowly = [] { std::this_thread::sleep_for(400ms); };
  for (int R = 2; R <= 4; ++R) {
    const std::string of = " of " + std::to_string(R) + " ranks";
    const auto x = [](index_t n) { return ones<float>({n}); };
    all.push_back({"a receive before a collective, its send behind it" + of, R, [=](C& c) {
                     const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
                     auto coming = c.template receive<float>(3, before, 5);
                     if (c.rank() == 0) slowly();
                     c.all_reduce(x(9), reduction::sum, "w").get();
                     c.send(x(3), next, 5).get();
                     coming.get();
                   }});
    all.push_back({"a receive and a collective, of which the receive is waited for first" + of, R, [=](C& c) {
                     const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
                     auto coming = c.template receive<float>(3, before, 5);
                     auto sum = c.all_reduce(x(9), reduction::sum, "w");
                     auto going = c.send(x(3), next, 5);
                     if (c.rank() == 0) slowly();
                     coming.get();
                     going.get();
                     sum.get();
                   }});
    all.push_back({"a send long before its receive" + of, R, [=](C& c) {
                     const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
                     auto going = c.send(x(1 << 20), next, 5);
                     c.barrier("between").get();
                     if (c.rank() == c.size() - 1) slowly();
                     c.template receive<float>(1 << 20, before, 5).get();
                     going.get();
                     c.barrier("end").get();
                   }});
    all.push_back({"a receive that is waited for by a rank whose sender is slow" + of, R, [=](C& c) {
                     if (c.rank() == 0) {
                       slowly();
                       for (int r = 1; r < c.size(); ++r) c.send(x(3), r, 5).get();
                     } else {
                       receive_from(c, 0);
                     }
                     if (c.rank() == 1) slowly();
                     c.all_reduce(x(9), reduction::sum, "w").get();
                   }});
    all.push_back({"large messages in both directions at a time" + of, R, [=](C& c) {
                     const int next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
                     auto coming = c.template receive<float>(1 << 20, before, 5);
                     if (c.rank() == 0) slowly();
                     c.send(x(1 << 20), next, 5).get();
                     coming.get();
                   }});
  }
  return all;
}

template <class C>
void check_right_programs() {
  auto scenes = right_programs<C>();
  play_all(scenes, 60s);
  for (const auto& scene : scenes)
    for (const seen& s : scene.ranks) {
      INFO(scene.name << ": " << s.text);
      CHECK(s.text.empty());
    }
}

/// A waits for B, B waits for C, and C is away.
template <class C>
void check_blame() {
  std::list<scene_of<C>> scenes;
  for (int R = 3; R <= 4; ++R)
    for (int away = 0; away < R; ++away) {
      const auto towards = [=](const C& c) { return (c.rank() + 1) % R; };  // the last of the chain is the one away
      const std::string of = " of " + std::to_string(R) + ", without rank " + std::to_string(away);
      const auto add = [&](const std::string& name, auto f) {
        scenes.push_back({name + of, R, [=](C& c) { f(c); }, away});
      };
      add("each receives from the next", [=](C& c) { receive_from(c, towards(c)); });
      add("one receives, the others add", [=](C& c) {
        if (towards(c) == away) return receive_from(c, away);
        c.all_reduce(ones<float>({9}), reduction::sum, "w").get();
      });
      add("all add", [=](C& c) { c.all_reduce(ones<float>({9}), reduction::sum, "w").get(); });
    }
  play_all(scenes, 3s);
  for (const auto& scene : scenes)
    for (int r = 0; r < scene.size; ++r) {
      if (r == scene.away) continue;
      const seen& s = scene.ranks[std::size_t(r)];
      INFO(scene.name << ", rank " << r << ": " << s.text);
      CHECK(s.kind == failure::timeout);
      CHECK(s.peer == scene.away);
      CHECK(has(s.text, "waited for rank " + std::to_string(scene.away) + " in vain"));
    }
}

}  // namespace

TEST_CASE("waiting: calls that never meet are a mismatch, over threads", "[parallel][communicator]") {
  check_wrong_programs<thread_communicator>();
}
TEST_CASE("waiting: calls that never meet are a mismatch, over sockets", "[parallel][communicator]") {
  check_wrong_programs<socket_communicator>();
}
TEST_CASE("waiting: messages under way are no mismatch", "[parallel][communicator]") {
  check_right_programs<thread_communicator>();
  check_right_programs<socket_communicator>();
}
TEST_CASE("waiting: a timeout names the rank that does not wait itself", "[parallel][communicator]") {
  check_blame<thread_communicator>();
  check_blame<socket_communicator>();
}

TEST_CASE("waiting: two sends that wait for each other's receive are named when the time is over",
          "[parallel][communicator]") {
  std::list<scene_of<socket_communicator>> scenes;
  scenes.push_back({"sends", 2, [](socket_communicator& c) {
                      c.send(ones<float>({16 << 20}), 1 - c.rank(), 5).get();
                      receive_from(c, 1 - c.rank());
                    }});
  play_all(scenes, 2s);
  for (const seen& s : scenes.front().ranks) {
    CHECK(s.kind == failure::mismatch);
    CHECK_THAT(s.text,
               Catch::Contains("rank 0 waits in send of 16777216 float with tag 5 for rank 1, rank 1 waits in"));
  }
}

TEST_CASE("waiting: the words of a mismatch, also of nodes", "[parallel][communicator]") {
  std::atomic<int> right{0};
  const auto check = [&](auto ranks) {
    ranks.barrier("begin").get();
    const auto e = error_of([&] {
      if (ranks.rank() == 1) ranks.template receive<float>(3, 2, 5).get();
      else ranks.all_reduce(ones<float>({8}), reduction::sum, "loss").get();
    });
    require(e.kind() == failure::mismatch && e.peer() == 1, "who and what");
    require_text(e,
                 "mismatch: rank 1 waits in receive of 3 float with tag 5 for rank 2, rank 2 waits in all_reduce of 8 "
                 "float 'loss', its collective number 2 for rank 1: none of this can end; all ranks must make the same "
                 "collectives in the same order, and each receive needs a send");
    ++right;
  };
  run_ranks(3, {.timeout = 60s}, [&](thread_communicator world) { check(world); });
  run_ranks(3, {.timeout = 60s}, [&](thread_communicator world) { check(hierarchical_communicator(world, 2)); });
  CHECK(right == 6);
  std::list<scene_of<socket_communicator>> over_sockets;
  over_sockets.push_back({"nodes", 3, [&](socket_communicator& world) { check(hierarchical_communicator(world, 2)); }});
  play_all(over_sockets, 60s);
  for (const seen& s : over_sockets.front().ranks) CHECK(s.text.empty());
  CHECK(right == 9);
}

// tests/ranks/thread_communicator_test.cpp: ranks that are threads, and each fault of theirs.
#include <chrono>

#include <sinter/ranks/thread/communicator.hpp>
#include <sinter/sinter.hpp>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;
using namespace std::chrono_literals;
using failure = communication_failure;

TEST_CASE("threads: all calls, with 1 to 5 ranks", "[parallel][communicator]") {
  for (const int R : {1, 2, 3, 5}) {
    INFO(R << " ranks");
    CHECK_NOTHROW(run_ranks(R, {}, [](thread_communicator ranks) { check_all(ranks, true); }));
  }
}

TEST_CASE("threads: sums are the same bit by bit each time", "[parallel][communicator]") {
  std::vector<float> first(1000);
  for (int time = 0; time < 5; ++time)
    run_ranks(4, {}, [&](thread_communicator ranks) {
      tensor x = values_of<float>(ranks.rank(), 1000);
      for (index_t i = 0; i < 1000; ++i) x(i) = std::exp(x(i) * 4);
      tensor sum = ranks.all_reduce(x).get();
      if (ranks.rank() != 2) return;
      if (time == 0) std::copy(sum.begin(), sum.end(), first.begin());
      require(std::equal(sum.begin(), sum.end(), first.begin()), "same bits");
    });
}

TEST_CASE("threads: the maximum is NaN where an element is", "[parallel][communicator]") {
  run_ranks(3, {}, [](thread_communicator ranks) {
    tensor<float, 1> x{ranks.rank() == 1 ? std::nanf("") : 1.f, float(ranks.rank())};
    tensor top = ranks.all_reduce(x, reduction::max).get();
    require(std::isnan(top(0)) && top(1) == 2, "maximum");
  });
}

TEST_CASE("threads: a write of all_reduce is noticed by the tape", "[parallel][communicator]") {
  run_ranks(1, {}, [](thread_communicator ranks) {
    variable<float, 1> w = ones<float>({3});
    variable<float, 1> y = w * w;
    ranks.all_reduce(w.value()).get();
    try {
      sum(y).backward();
    } catch (const autograd_error&) {
      return;
    }
    require(false, "backward after a write in place throws");
  });
}

TEST_CASE("threads: an emulated link takes its time, beside the program", "[parallel][communicator]") {
  using clock = std::chrono::steady_clock;
  run_ranks(3, {.latency = 5ms, .bandwidth = 1e6}, [](thread_communicator ranks) {
    const auto took = [&](auto f) {
      ranks.barrier().get();
      const auto begin = clock::now();
      f();
      return std::chrono::duration<double>(clock::now() - begin).count();
    };
    tensor x = zeros<float>({30000});
    require(took([&] { ranks.all_reduce(x).get(); }) >= 4 * (0.005 + 0.040), "all_reduce: 4 messages of 40 kB");
    require(took([&] { ranks.all_gather(x.slice(0, 0, 1000)).get(); }) >= 2 * 0.009, "all_gather: 2 messages of 4 kB");
    require(took([&] { ranks.broadcast(x, 0).get(); }) >= 2 * 0.125, "broadcast: 2 messages of 120 kB");
    const double exchange = took([&] {  // rank 0 answers rank 1
      const tensor one = zeros<float>({1});
      if (ranks.rank() == 1) {
        ranks.send(one, 0).get();
        ranks.receive<float>(30000, 0).get();
      }
      if (ranks.rank() == 0) {
        ranks.receive<float>(1, 1).get();
        ranks.send(x, 1).get();
      }
    });
    require(ranks.rank() != 1 || exchange >= 0.005 + 0.125, "a message of 4 bytes, and one of 120 kB");
    auto coming = ranks.all_reduce(x);
    require(!coming.done(), "the program goes on meanwhile");
  });
}

TEST_CASE("threads: an exception on one rank reaches all others with its text", "[parallel][communicator]") {
  std::vector<std::string> texts(3);
  const auto run = [&] {
    run_ranks(3, {}, [&](thread_communicator ranks) {
      ranks.barrier("begin").get();
      if (ranks.rank() == 1) throw std::runtime_error("disk full");
      const auto e = error_of([&] { ranks.all_reduce(ones<float>({4}), reduction::sum, "loss").get(); });
      texts[std::size_t(ranks.rank())] = e.what();
      require(e.kind() == failure::aborted && e.peer() == 1 && e.rank() == ranks.rank(), "who and what");
      const auto again = error_of([&] { ranks.barrier().get(); });
      require(std::string(again.what()) == e.what(), "later calls throw the same");
    });
  };
  CHECK_THROWS_WITH(run(), "disk full");
  for (const std::size_t r : {0u, 2u}) CHECK_THAT(texts[r], Catch::Contains("aborted by rank 1: disk full"));
}

TEST_CASE("threads: an exception that is no std::exception is passed on, and told to the others",
          "[parallel][communicator]") {
  struct odd {
    int value;
  };
  for (const bool moves_away : {false, true}) {
    std::vector<std::string> texts(3);
    int value = 0;
    try {
      run_ranks(3, [&](thread_communicator& given) {
        thread_communicator ranks = moves_away ? std::move(given) : given;
        ranks.barrier("begin").get();
        if (ranks.rank() == 1) throw odd{7};
        const auto e = error_of([&] { ranks.all_reduce(ones<float>({4})).get(); });
        require(e.kind() == failure::aborted && e.peer() == 1, "who and what");
        texts[std::size_t(ranks.rank())] = e.what();
      });
    } catch (const odd& thrown) {
      value = thrown.value;
    }
    CHECK(value == 7);
    for (const std::size_t r : {0u, 2u})
      CHECK_THAT(texts[r], Catch::Contains("aborted by rank 1: an exception that is no std::exception"));
  }
  CHECK_THROWS_AS(run_ranks(1, [](thread_communicator) { throw 7; }), int);
}

TEST_CASE("threads: run_rank gives the result of f, or tells the others of its exception", "[parallel][communicator]") {
  run_ranks(2, [](thread_communicator world) {
    const auto all = [](thread_communicator& ranks) { return ranks.all_reduce(ones<float>({1})).get().item(); };
    require(run_rank(world, all) == 2, "what f returns");
    bool is_thrown = false;
    try {
      run_rank(world, [](thread_communicator& ranks) {
        if (ranks.rank() == 0) throw std::runtime_error("disk full");
        ranks.barrier().get();
      });
    } catch (const communication_error& e) {
      require_text(e, "aborted by rank 0: disk full");
      is_thrown = world.rank() == 1;
    } catch (const std::runtime_error& e) {
      is_thrown = world.rank() == 0 && std::string(e.what()) == "disk full";
    }
    require(is_thrown, "the exception of f, and the others' error");
  });
}

TEST_CASE("threads: a communicator that is destroyed by an exception tells the others", "[parallel][communicator]") {
  std::vector<thread_communicator> all = thread_communicator::make(2);
  std::thread other([mine = std::move(all[1])]() mutable {
    try {
      const thread_communicator here = std::move(mine);
      throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
    }
  });
  const auto e = error_of([&] { all[0].barrier().get(); });
  other.join();
  CHECK(e.kind() == failure::aborted);
  CHECK_THAT(e.what(), Catch::Contains("aborted by rank 1: an exception left the block of its communicator"));
}

TEST_CASE("threads: a rank that returns early does not leave the others waiting", "[parallel][communicator]") {
  run_ranks(3, {}, [](thread_communicator ranks) {
    ranks.barrier().get();
    if (ranks.rank() == 2) return;
    const auto e = error_of([&] { ranks.all_reduce(ones<float>({2}), reduction::sum, "w").get(); });
    require(e.kind() == failure::peer_lost && e.peer() == 2 && e.number() == 2 && e.name() == "w", "who and what");
    require_text(e, "all_reduce number 2 'w': rank 2 has ended");
  });
}

TEST_CASE("threads: a rank that dies is lost", "[parallel][communicator]") {
  const auto run = [] {
    run_ranks(3, {.die_at = {1, 2}}, [](thread_communicator ranks) {
      ranks.barrier().get();
      const auto e = error_of([&] { ranks.all_reduce(ones<float>({2})).get(); });
      if (ranks.rank() == 1) throw e;
      require(e.kind() == failure::peer_lost && e.peer() == 1, "who and what");
      require_text(e, "all_reduce number 2: rank 1 was lost");
    });
  };
  CHECK_THROWS_WITH(run(), Catch::Contains("this rank dies here"));
}

TEST_CASE("threads: a rank that stalls is named after the timeout", "[parallel][communicator]") {
  run_ranks(4, {.timeout = 300ms, .stall_at = {3, 2}}, [](thread_communicator ranks) {
    ranks.barrier().get();
    auto waits = ranks.all_reduce(ones<float>({2}), reduction::sum, "bucket");
    const auto e = error_of([&] { waits.get(); });
    require(e.kind() == failure::timeout && e.peer() == 3, "who and what");
    require_text(e, "all_reduce number 2 'bucket': timeout: waited for rank 3 in vain");
  });
}

TEST_CASE("threads: get() with a limit ends earlier than the timeout, for messages too", "[parallel][communicator]") {
  run_ranks(2, {}, [](thread_communicator ranks) {
    if (ranks.rank() == 0) {
      const auto first = ranks.all_reduce(ones<float>({2}), reduction::sum, "first");
      auto second = ranks.all_reduce(ones<float>({2}), reduction::sum, "second");
      const auto e = error_of([&] { second.get(0.2); });
      require(e.kind() == failure::timeout && e.peer() == 1, "who and what");
      require_text(e, "'first': timeout: waited for rank 1 in vain");
      for (int again = 0; again < 2; ++again) require_text(error_of([&] { second.get(); }), e.what());
      require_text(error_of([&] { ranks.barrier().get(5); }), e.what());
    } else {  // away
      const auto waits = ranks.receive<float>(2, 0);
      while (!waits.done()) std::this_thread::sleep_for(1ms);
      const auto e = error_of([&] { ranks.barrier().get(); });
      require(e.kind() == failure::timeout, "told");
    }
  });
  run_ranks(2, {}, [](thread_communicator ranks) {
    if (ranks.rank() == 0) {
      const auto e = error_of([&] { ranks.receive<float>(2, 1, 4).get(0.2); });
      require_text(e, "receive: timeout: waited for rank 1 in vain");
    } else {
      const auto waits = ranks.receive<float>(2, 0);
      while (!waits.done()) std::this_thread::sleep_for(1ms);
    }
  });
}

TEST_CASE("threads: other calls and other sizes are named, with both ranks", "[parallel][communicator]") {
  using ranks_type = thread_communicator;
  const auto differ = [](std::function<void(ranks_type&)> usual, std::function<void(ranks_type&)> other,
                         const std::string& text) {
    run_ranks(3, {}, [&](thread_communicator ranks) {
      ranks.barrier().get();
      const auto e = error_of([&] { ranks.rank() == 2 ? other(ranks) : usual(ranks); });
      require(e.kind() == failure::mismatch && e.peer() == 2, "who and what");
      require_text(e, text);
    });
  };
  const auto sum = [](index_t n, const char* name) {
    return [=](ranks_type& c) { c.all_reduce(zeros<float>({n}), reduction::sum, name).get(); };
  };
  CHECK_NOTHROW(differ(sum(8, "w"), sum(9, "w"),
                       "mismatch: rank 0 calls all_reduce of 8 float 'w', its collective number 2, and rank 2 calls "
                       "all_reduce of 9 float 'w', its collective number 2"));
  CHECK_NOTHROW(differ(sum(8, "w"), sum(8, "b"), "rank 2 calls all_reduce of 8 float 'b'"));
  CHECK_NOTHROW(differ(
      sum(8, "w"), [](ranks_type& c) { c.broadcast(zeros<float>({8}), 1, "w").get(); },
      "rank 2 calls broadcast of 8 float 'w' from rank 1"));
  CHECK_NOTHROW(differ(
      sum(8, "w"), [](ranks_type& c) { c.all_reduce(zeros<double>({8}), reduction::sum, "w").get(); },
      "rank 2 calls all_reduce of 8 double 'w'"));
  CHECK_NOTHROW(differ(
      sum(8, "w"), [](ranks_type& c) { c.all_reduce(zeros<float>({8}), reduction::max, "w").get(); },
      "rank 2 calls all_reduce (max) of 8 float 'w'"));
  CHECK_NOTHROW(differ(sum(8, "w"), [](ranks_type& c) { c.barrier("end").get(); }, "rank 2 calls barrier 'end'"));
  const auto send = [] {
    run_ranks(2, {}, [](thread_communicator ranks) {
      if (ranks.rank() == 0) ranks.send(zeros<float>({3}), 1, 5).get();
      const auto e = error_of([&] {
        if (ranks.rank() == 1) ranks.receive<float>(3, 0, 6).get();
        ranks.barrier().get();
      });
      require(e.kind() == failure::mismatch, "kind");
      require_text(e, "rank 0 calls send of 3 float with tag 5, and rank 1 calls receive of 3 float with tag 6");
    });
  };
  CHECK_NOTHROW(send());
}

TEST_CASE("threads: a rank that aborts while it waits itself", "[parallel][communicator]") {
  run_ranks(2, {}, [](thread_communicator ranks) {
    if (ranks.rank() == 1) {
      const auto waits = ranks.receive<float>(1, 0);
      while (!waits.done()) std::this_thread::sleep_for(1ms);
      return;
    }
    auto waits = ranks.all_reduce(ones<float>({2}));
    ranks.abort("no more work");
    require_text(error_of([&] { waits.get(); }), "aborted by rank 0: no more work");
    require_text(error_of([&] { ranks.barrier().get(); }), "aborted by rank 0: no more work");
  });
}

TEST_CASE("threads: wrong arguments are errors, after which the communicator works", "[parallel][communicator]") {
  run_ranks(2, {}, [](thread_communicator ranks) {
    const auto throws = [](auto f, const std::string& text) {
      try {
        f();
      } catch (const communication_error&) {
      } catch (const error& e) {
        return require(std::string(e.what()).find(text) != std::string::npos, text + " in " + e.what());
      }
      require(false, "an error with " + text);
    };
    throws([&] { ranks.broadcast(ones<float>({2}), 2).get(); }, "broadcast: there is no rank 2 among 2");
    throws([&] { ranks.send(ones<float>({2}), -1).get(); }, "send: there is no rank -1 among 2");
    throws([&] { ranks.reduce_scatter(ones<float>({3})).get(); }, "3 elements are not 2 equal parts");
    throws([&] { ranks.all_reduce(ones<float>({4}).slice(0, 0, 4, 2)).get(); }, "call contiguous() first");
    throws([&] { ranks.all_reduce(tensor<float, 1>{}).get(); }, "all_reduce");
    throws([&] { ranks.split(-1, 0); }, "the color is -1");
    ranks.barrier().get();
    auto once = ranks.all_reduce(ones<float>({2}));
    once.get();
    throws([&] { once.get(); }, "the result was taken already");
    auto waits = ranks.all_reduce(ones<float>({2}));
    throws([&] { waits.get(-1); }, "work: get(-1): give a number of seconds from 0 on");
    throws([&] { waits.get(std::nan("")); }, "work: get(nan)");
    require(waits.get(20)(0) == 2, "the result is still to be had");
  });
  CHECK_THROWS_WITH(thread_communicator::make(0), Catch::Contains("0 ranks"));
}

TEST_CASE("threads: options that make no sense are refused by name", "[parallel][communicator]") {
  const double nan = std::nan(""), endless = std::numeric_limits<double>::infinity();
  using seconds = std::chrono::duration<double>;
  const auto text_of = [](const thread_options& o) {
    try {
      thread_communicator::make(2, o);
    } catch (const value_error& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  const std::string who = "thread_communicator: ";
  CHECK(text_of({.timeout = seconds(0)}) == who + "timeout is 0 seconds; give more than 0");
  CHECK_THAT(text_of({.timeout = seconds(-1)}), Catch::StartsWith(who + "timeout is -1 seconds"));
  CHECK_THAT(text_of({.timeout = seconds(nan)}), Catch::StartsWith(who + "timeout is nan seconds"));
  CHECK(text_of({.latency = seconds(-1)}) == who + "latency is -1 seconds; give 0 or more");
  CHECK_THAT(text_of({.latency = seconds(nan)}), Catch::StartsWith(who + "latency is nan"));
  CHECK_THAT(text_of({.latency = seconds(endless)}), Catch::StartsWith(who + "latency is inf"));
  CHECK(text_of({.bandwidth = -1}) == who + "bandwidth is -1 bytes per second; give more than 0, or 0 for no limit");
  CHECK_THAT(text_of({.bandwidth = nan}), Catch::StartsWith(who + "bandwidth is nan"));
  CHECK(text_of({.die_at = {2, 1}}) == who + "die_at is {2, 1}, where there are 2 ranks; collectives count from 1");
  CHECK_THAT(text_of({.stall_at = {1, -1}}), Catch::StartsWith(who + "stall_at is {1, -1}"));
  CHECK(text_of({.timeout = seconds(endless), .bandwidth = endless}) == "taken");
}

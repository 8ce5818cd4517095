// tests/ranks/hierarchical_test.cpp: ranks on nodes of different sizes: all calls, links between them, and faults.
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;
using namespace std::chrono_literals;
using failure = communication_failure;

namespace {

/// The bytes of x are the same on all ranks.
template <class C>
void require_same_on_all(C& ranks, const tensor<float, 1>& x, const std::string& what) {
  const tensor all = ranks.all_gather(x.clone()).get();
  for (int r = 0; r < ranks.size(); ++r)
    require(std::equal(x.begin(), x.end(), all.begin() + r * x.numel()), what + ": the same on all ranks");
}

}  // namespace

TEST_CASE("hierarchical: all calls, for nodes of equal and different sizes", "[parallel][communicator]") {
  const int shapes[][2] = {{1, 1}, {2, 1}, {3, 4}, {4, 2}, {5, 2}};  // ranks, ranks per node
  for (const auto& [R, per_node] : shapes) {
    INFO(R << " ranks, " << per_node << " per node");
    CHECK_NOTHROW(run_ranks(R, {}, [each = per_node](thread_communicator world) {
      hierarchical_communicator ranks(world, each);
      require(ranks.rank() == world.rank() && ranks.size() == world.size(), "ranks of all");
      check_all(ranks, false);
    }));
  }
}

TEST_CASE("hierarchical: nodes in any order, whose ranks are in any order", "[parallel][communicator]") {
  CHECK_NOTHROW(run_ranks(5, {}, [](thread_communicator world) {
    const int nodes[] = {1, 0, 0, 1, 0};  // so rank 3 leads ranks 3, 0, and rank 4 leads ranks 4, 2, 1
    hierarchical_communicator ranks(world.split(nodes[world.rank()], -world.rank()), world);
    check_all(ranks, false);
  }));
}

TEST_CASE("hierarchical: sums are the same bit by bit on all ranks and each time", "[parallel][communicator]") {
  std::vector<float> first(1000);
  for (int time = 0; time < 3; ++time)
    CHECK_NOTHROW(run_ranks(5, {}, [&](thread_communicator world) {
      hierarchical_communicator ranks(world, 2);
      tensor x = values_of<float>(ranks.rank(), 1000);
      for (index_t i = 0; i < 1000; ++i) x(i) = std::exp(x(i) * 4);
      const tensor sum = ranks.all_reduce(x).get();
      require_same_on_all(ranks, sum, "sum");
      if (ranks.rank() != 2) return;
      if (time == 0) std::copy(sum.begin(), sum.end(), first.begin());
      require(std::equal(sum.begin(), sum.end(), first.begin()), "same bits");
    }));
}

TEST_CASE("hierarchical: few messages take the slow links, beside the program", "[parallel][communicator]") {
  using clock = std::chrono::steady_clock;
  std::vector<thread_communicator> slow = thread_communicator::make(8, {.latency = 20ms});
  CHECK_NOTHROW(run_ranks(8, {}, [&](thread_communicator fast) {
    thread_communicator world = slow[std::size_t(fast.rank())];
    hierarchical_communicator ranks(fast.split(fast.rank() / 4, fast.rank()), world);
    const auto took = [&](auto& over) {
      fast.barrier().get();
      const auto begin = clock::now();
      auto coming = over.all_reduce(ones<float>({100}));
      require(!coming.done(), "the program goes on meanwhile");
      require(coming.get()(7) == 8, "sum");
      return std::chrono::duration<double>(clock::now() - begin).count();
    };
    const double flat = took(world), in_steps = took(ranks);
    require(flat >= 14 * 0.02, "a ring of 8: 14 messages");
    require(in_steps >= 2 * 0.02 && in_steps < flat, "a ring of 2 nodes: 2 messages, in " + std::to_string(in_steps));
  }));
}

TEST_CASE("hierarchical: an exception on one rank reaches all others with its text", "[parallel][communicator]") {
  std::vector<std::string> texts(5);
  const auto run = [&] {
    run_ranks(5, {}, [&](thread_communicator world) {
      hierarchical_communicator ranks(world, 2);
      ranks.barrier("begin").get();
      if (ranks.rank() == 3) {
        ranks.abort("disk full");
        throw std::runtime_error("disk full");
      }
      const auto e = error_of([&] { ranks.all_reduce(ones<float>({4}), reduction::sum, "loss").get(); });
      texts[std::size_t(ranks.rank())] = e.what();
      require(e.kind() == failure::aborted && e.peer() == 3 && e.rank() == ranks.rank(),
              std::string("who: ") + e.what());
      require(std::string(error_of([&] { ranks.barrier().get(); }).what()) == e.what(), "later calls throw the same");
    });
  };
  CHECK_THROWS_WITH(run(), "disk full");
  for (const std::size_t r : {0u, 1u, 2u, 4u}) {
    CHECK_THAT(texts[r], Catch::Contains("communicator (hierarchical: threads, threads), rank " + std::to_string(r)));
    CHECK_THAT(texts[r], Catch::Contains("aborted by rank 3: disk full"));
  }
}

TEST_CASE("hierarchical: calls that differ, and ranks that end early, are named among all",
          "[parallel][communicator]") {
  CHECK_NOTHROW(run_ranks(4, {}, [&](thread_communicator world) {
    hierarchical_communicator ranks(world, 2);
    const auto e = error_of([&] { ranks.all_reduce(ones<float>({world.rank() == 3 ? 5 : 4})).get(); });
    require(e.kind() == failure::mismatch && e.peer() == 3, "who and what");
    require_text(e, "rank 3 calls all_reduce of 5 float");
  }));
  CHECK_NOTHROW(run_ranks(4, {}, [&](thread_communicator world) {
    hierarchical_communicator ranks(world, 2);
    if (world.rank() == 3) return;
    require_text(error_of([&] { ranks.all_reduce(ones<float>({4})).get(); }), "rank 3 has ended");
  }));
}

TEST_CASE("hierarchical: a rank of a node that stops is named among all", "[parallel][communicator]") {
  ::setenv("SINTER_COMM_SECRET", "0123456789abcdef0123456789abcdef", 1);
  const std::string address = "unix:/tmp/sinter_hierarchical_" + std::to_string(::getpid());
  std::vector<std::string> problems(4);
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r)
    threads.emplace_back([&, r] {
      try {
        socket_communicator world({.rank = r, .size = 4, .address = address, .timeout = 20s, .checked_calls = 0});
        hierarchical_communicator ranks(world, 2);
        tensor x = ones<float>({4});
        require(ranks.all_reduce(x).get()(0) == 4, "sum");
        if (r == 3) {  // takes no part in the next sum
          world.barrier("the others have failed").get();
          return;
        }
        const auto e = error_of([&] { ranks.all_reduce(x).get(0.3); });
        require(e.kind() == failure::timeout && e.peer() == 3, e.what());
        require_text(e, "inside the node, where rank 1 is rank 3 of all: timeout: waited for rank 1");
        world.barrier("the others have failed").get();
      } catch (const std::exception& e) {
        problems[std::size_t(r)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& p : problems) CHECK(p == "");
}

TEST_CASE("hierarchical: what cannot be nodes", "[parallel][communicator]") {
  CHECK_THROWS_WITH(run_ranks(2, {}, [](thread_communicator world) { hierarchical_communicator ranks(world, 0); }),
                    Catch::Contains("0 ranks per node"));
  CHECK_NOTHROW(run_ranks(3, {}, [](thread_communicator world) {
    thread_communicator node = world.split(world.rank() == 2 ? 1 : 0, 0);
    if (world.rank() == 2) node = thread_communicator::make(3)[1];
    try {
      hierarchical_communicator ranks(node, world);
    } catch (const std::exception& e) {
      return;
    }
    require(false, "a node with ranks of another world");
  }));
}

TEST_CASE("hierarchical: a model is trained over nodes", "[parallel][communicator][distributed]") {
  CHECK_NOTHROW(run_ranks(5, {}, [](thread_communicator world) {
    hierarchical_communicator ranks(world, 2);
    const auto train = [&](auto& over, const auto& make_optimizer) {
      generator gen(1);
      nn::sequential model{nn::linear(4, 6, gen), nn::tanh(), nn::linear(6, 2, gen)};
      nn::distributed distributed(model, over, {.bucket_bytes = 100, .first_bucket_bytes = 100});
      auto optimizer = make_optimizer(model, distributed);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        const tensor x = full<float>({3, 4}, 0.1f * static_cast<float>(over.rank() + step));
        variable loss = mean(square(model(x)));
        distributed.backward(loss, 3);
        optimizer.step();
      }
      std::vector<float> all;
      model.for_each_parameter([&](const std::string&, const auto& p) {
        const tensor flat = p.value().flatten();
        all.insert(all.end(), flat.begin(), flat.end());
      });
      return all;
    };
    const auto plain = [](auto& model, auto&) { return optim::sgd(model, {.lr = 0.1, .momentum = 0.9}); };
    const auto sharded = [](auto&, auto& distributed) {
      return optim::sharded<optim::sgd>(distributed, {.lr = 0.1, .momentum = 0.9});
    };
    const auto flat = train(world, plain), in_steps = train(ranks, plain);
    for (std::size_t i = 0; i < flat.size(); ++i) require(std::abs(flat[i] - in_steps[i]) < 1e-5f, "values");
    require(train(ranks, sharded) == in_steps, "and with the state spread over ranks");
  }));
}

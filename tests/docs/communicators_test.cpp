// tests/docs/communicators_test.cpp: the snippets of docs/communicators.md, as tests.
#include <sinter/ranks/socket/communicator.hpp>
#include <sinter/ranks/thread/communicator.hpp>
#include <sinter/sinter.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:any]
template <communicator_on<cpu> C>
float mean_over(C& ranks, float mine) {
  auto coming = ranks.all_reduce(tensor<float, 1>{mine}, reduction::sum, "mean loss");
  // ... what does not need the sum ...
  return coming.get().item() / static_cast<float>(ranks.size());
}
// [docs:end]

// [docs:sockets]
float over_sockets(float mine) {
  socket_communicator ranks(socket_options::from_environment());
  return mean_over(ranks, mine);
}
// [docs:end]

void train(socket_communicator& ranks) {
  mean_over(ranks, 1);
  throw std::runtime_error("disk full");
}

// [docs:process]
int rank_of_a_program() {
  try {
    socket_communicator world(socket_options::from_environment());
    run_rank(world, [](socket_communicator& ranks) { train(ranks); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());  // on the other ranks: ... aborted by rank 1: disk full
    return 1;
  }
  return 0;
}
// [docs:end]

}  // namespace

TEST_CASE("docs: communicators.md, threads") {
  std::atomic<int> right{0};
  // [docs:threads]
  run_ranks(4, {.timeout = std::chrono::seconds(10)}, [&](thread_communicator ranks) {
    if (mean_over(ranks, static_cast<float>(ranks.rank())) == 1.5f) ++right;
    thread_communicator half = ranks.split(ranks.rank() / 2, ranks.rank());  // ranks 0, 1 and ranks 2, 3
    half.barrier().get();
  });
  // [docs:end]
  CHECK(right == 4);
}

TEST_CASE("docs: communicators.md, errors") {
  std::string text;
  // [docs:errors]
  try {
    run_ranks(3, {.timeout = std::chrono::milliseconds(200), .stall_at = {2, 1}}, [](thread_communicator ranks) {
      ranks.all_reduce(ones<float>({1000}), reduction::sum, "bucket 0").get();
    });
  } catch (const communication_error& e) {
    if (e.kind() == communication_failure::timeout && e.peer() == 2) text = e.what();
  }
  // [docs:end]
  CHECK_THAT(text, Catch::Contains("of 3: all_reduce number 1 'bucket 0': timeout: waited for rank 2 in vain"));
}

TEST_CASE("docs: communicators.md, sockets") {
  char folder[] = "/tmp/sinter_docs_XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  ::setenv("SINTER_COMM_SECRET", "a secret of the tests", 1);
  ::setenv("SINTER_ADDRESS", ("unix:" + std::string(folder) + "/s").c_str(), 1);
  ::setenv("SINTER_SIZE", "2", 1);
  ::setenv("SINTER_RANK", "0", 1);
  socket_options other = socket_options::from_environment();
  other.rank = 1;
  float theirs = 0;
  std::thread second([&] {
    socket_communicator ranks(other);
    theirs = mean_over(ranks, 3);
  });
  CHECK(over_sockets(1) == 2);
  second.join();
  CHECK(theirs == 2);
  std::string text;
  std::thread third([&] {
    socket_communicator ranks(other);
    try {
      while (true) mean_over(ranks, 1);
    } catch (const communication_error& e) {
      text = e.what();
    }
  });
  CHECK(rank_of_a_program() == 1);
  third.join();
  CHECK_THAT(text, Catch::Contains("aborted by rank 0: disk full"));
  for (const char* name : {"SINTER_COMM_SECRET", "SINTER_ADDRESS", "SINTER_SIZE", "SINTER_RANK"}) ::unsetenv(name);
  std::filesystem::remove_all(folder);
}

// tests/docs/plan_test.cpp: the snippets of docs/plan.md, as tests.
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <chrono>
#include <iostream>
#include <sstream>

#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:trace]
std::vector<nn::step_trace> steps_of_one_rank(int count) {
  generator gen(1);
  nn::sequential model{nn::linear(20, 64, gen), nn::relu(), nn::linear(64, 3, gen)};
  thread_communicator one = thread_communicator::make(1)[0];
  nn::distributed ranks(model, one, {.bucket_bytes = 1, .first_bucket_bytes = 1});  // each gradient by itself
  optim::adam optimizer(model);
  const tensor x = randn<float>(gen, {32, 20});
  const tensor y = zeros<std::int64_t>({32});
  std::vector<nn::step_trace> steps;
  for (int i = -3; i < count; ++i) {
    ranks.begin(32);  // before the forward pass, which is timed from here
    variable loss = cross_entropy(model(x), y);
    ranks.backward(loss, 32);
    const auto start = std::chrono::steady_clock::now();
    optimizer.step();
    optimizer.zero_grad();
    if (i < 0) continue;  // the first steps make memory, and put the buckets together
    steps.push_back(ranks.trace());
    steps.back().optimizer = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return steps;
}
// [docs:end]

}  // namespace

TEST_CASE("docs: plan.md, from steps to a plan") {
  const auto steps = steps_of_one_rank(10);
  std::stringstream said;
  std::streambuf* const screen = std::cout.rdbuf(said.rdbuf());
  // [docs:plan]
  const network_model network{.between_nodes = {5e-6, 3e9}, .within_node = {1e-6, 100e9}, .ranks_per_node = 8};
  const nn::plan_report report =
      nn::plan(steps, network, {.checkpoint_seconds = 20, .hours_to_failure = 50000, .restart_seconds = 300});
  std::cout << report;                                                     // a table of 1 to 4096 ranks
  const nn::plan_row& most = report.rows.back();                           // or numbers
  const bool waits_for_messages = most.limit() == std::string("latency");  // and not for bytes or for other ranks
  // [docs:end]
  std::cout.rdbuf(screen);
  CHECK_THAT(said.str(), Catch::Contains("  4096 "));
  CHECK(most.ranks == 4096);
  CHECK((!waits_for_messages || most.efficiency() < 0.95));
}

TEST_CASE("docs: plan.md, one number of ranks") {
  const auto steps = steps_of_one_rank(3);
  const network_model network{.between_nodes = {5e-6, 3e9}};
  // [docs:one]
  const nn::step_prediction p = nn::predict_step(
      nn::median_trace(steps), network, 64, {.collectives = nn::collective_choice::ring, .bucket_bytes = 25 << 20});
  const double hidden = 1 - p.exposed / p.communication;
  // [docs:end]
  CHECK(hidden < 1);
  CHECK(p.step >= p.computation);
}

TEST_CASE("docs: plan.md, a fitted network") {
  const auto fit_of = [](int size) {
    link_fit seen;
    run_ranks(size, {.latency = std::chrono::milliseconds(1)}, [&](thread_communicator world) {
      // [docs:fit]
      const link_fit fit = fit_link(measure_all_reduce(world, {1 << 10, 1 << 15, 1 << 20}));  // all ranks call it
      const network_model network{.between_nodes = fit.link, .call = fit.call};
      // [docs:end]
      if (world.rank() == 0) seen = fit;
      static_cast<void>(network);
    });
    return seen;
  };
  CHECK(fit_of(2).link.latency > 0.5e-3);
}

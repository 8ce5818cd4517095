// tests/ranks/plan_test.cpp: predictions for many ranks, against values found by following each message.
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <cmath>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using communicator_checks::has;
using communicator_checks::text_of_error;
using way = all_reduce_algorithm;

namespace {

const link_model wire{3e-6, 2e9};
const network_model one_link{.between_nodes = wire, .adding = 8e9};

/// What a rank does in one round of an algorithm: a message of so many bytes, and bytes added after it.
struct round_of {
  double bytes = 0, added = 0;
};
all_reduce_cost total(way algorithm, const std::vector<round_of>& rounds) {
  all_reduce_cost c{algorithm};
  for (const round_of& r : rounds) {
    c.latency += wire.latency;
    c.transfer += r.bytes / wire.bandwidth;
    c.adding += r.added / one_link.adding;
  }
  return c;
}
void require_same(const all_reduce_cost& got, const all_reduce_cost& want) {
  CHECK(got.by == want.by);
  CHECK(got.latency == Approx(want.latency));
  CHECK(got.transfer == Approx(want.transfer));
  CHECK(got.adding == Approx(want.adding));
}

nn::step_trace example() {
  nn::step_trace t;
  t.forward = 0.03;
  t.backward = 0.06;
  t.optimizer = 0.01;
  t.buckets = {{1000, 0.02}, {3000, 0.03}, {2000, 0.06}};
  return t;
}

}  // namespace

TEST_CASE("plan: sums over ranks take what the rounds of each algorithm take", "[parallel][plan]") {
  const double n = 48000;
  for (const int R : {2, 3, 4, 5, 8, 12, 16}) {
    INFO(R << " ranks");
    std::vector<round_of> ring, doubling, halving;
    for (int i = 1; i < R; ++i) ring.push_back({n / R, n / R});
    for (int i = 1; i < R; ++i) ring.push_back({n / R, 0});
    require_same(all_reduce_cost_of(way::ring, one_link, R, n), total(way::ring, ring));

    int power = 1;
    while (2 * power <= R) power *= 2;
    if (power < R) doubling.push_back({n, n}), halving.push_back({n, n});
    for (int i = 1; i < power; i *= 2) {
      doubling.push_back({n, n});
      halving.push_back({n / (2 * i), n / (2 * i)});
    }
    for (int i = power; i > 1; i /= 2) halving.push_back({n / i, 0});
    if (power < R) doubling.push_back({n, 0}), halving.push_back({n, 0});
    require_same(all_reduce_cost_of(way::recursive_doubling, one_link, R, n), total(way::recursive_doubling, doubling));
    require_same(all_reduce_cost_of(way::rabenseifner, one_link, R, n), total(way::rabenseifner, halving));
  }
}

TEST_CASE("plan: two trees cut their halves into the best number of parts", "[parallel][plan]") {
  for (const double n : {1e2, 1e5, 1e8})
    for (const int R : {2, 16, 1000}) {
      const double h = std::ceil(std::log2(R));
      const auto seconds = [&](double k) {
        return 2 * (2 * h + 2 * k) * (wire.latency + n / (2 * k) / wire.bandwidth);
      };
      const double got = all_reduce_cost_of(way::double_tree, {.between_nodes = wire}, R, n).seconds();
      double best = seconds(1);
      for (int k = 2; k < 3000; ++k) best = std::min(best, seconds(k));
      INFO(n << " bytes, " << R << " ranks: " << got << " for " << best);
      CHECK(got <= best * (1 + 1e-9));  // parts need not be whole here
      CHECK(got > best * 0.98);
    }
  CHECK(all_reduce_cost_of(way::double_tree, {.between_nodes = {0, 1e9}}, 64, 1e6).seconds() == Approx(2e-3));
  CHECK(all_reduce_cost_of(way::double_tree, {.between_nodes = {1e-6, 0}}, 64, 1e6).seconds() == Approx(28e-6));
}

TEST_CASE("plan: on several nodes", "[parallel][plan]") {
  const network_model nodes{.between_nodes = {20e-6, 1e9}, .within_node = {1e-6, 50e9}, .ranks_per_node = 4};
  const double n = 4e6;
  // 2 * 3 messages of a quarter within, then a quarter over 8 ranks.
  const all_reduce_cost across = cheapest_all_reduce({.between_nodes = {20e-6, 1e9}}, 8, n / 4);
  const all_reduce_cost all = all_reduce_cost_of(way::hierarchical, nodes, 32, n);
  CHECK(all.seconds() == Approx(6 * (1e-6 + n / 4 / 50e9) + across.seconds()));
  CHECK(cheapest_all_reduce(nodes, 32, n).by == way::hierarchical);
  // One node: links within it; many nodes: for all messages those between.
  CHECK(all_reduce_cost_of(way::ring, nodes, 4, n).seconds() == Approx(6 * (1e-6 + n / 4 / 50e9)));
  CHECK(all_reduce_cost_of(way::ring, nodes, 8, n).seconds() == Approx(14 * (20e-6 + n / 8 / 1e9)));
  CHECK_THROWS_WITH(all_reduce_cost_of(way::hierarchical, nodes, 4, n),
                    Catch::Contains("hierarchical, for 4 ranks, 4 on each node; it needs several nodes"));
  CHECK_THROWS_WITH(all_reduce_cost_of(way::ring, nodes, 0, n), Catch::Contains("0 ranks; there must be one or more"));
}

TEST_CASE("plan: the cheapest algorithm costs no more than any, and grows with all that makes sums dear",
          "[parallel][plan]") {
  for (const double n : {8., 1e4, 1e6, 1e8})
    for (int R = 2; R <= 4096; R *= 2) {
      const all_reduce_cost best = cheapest_all_reduce(one_link, R, n);
      for (const way a : {way::ring, way::recursive_doubling, way::rabenseifner, way::double_tree})
        CHECK(best.seconds() <= all_reduce_cost_of(a, one_link, R, n).seconds());
      CHECK(best.seconds() == all_reduce_cost_of(best.by, one_link, R, n).seconds());
      CHECK(cheapest_all_reduce(one_link, R, 2 * n).seconds() >= best.seconds());
      CHECK(cheapest_all_reduce(one_link, 2 * R, n).seconds() >= best.seconds());
      CHECK(cheapest_all_reduce({.between_nodes = {6e-6, 2e9}, .adding = 8e9}, R, n).seconds() > best.seconds());
      CHECK(cheapest_all_reduce({.between_nodes = {3e-6, 1e9}, .adding = 8e9}, R, n).seconds() > best.seconds());
      CHECK(cheapest_all_reduce({.between_nodes = wire, .adding = 4e9}, R, n).seconds() > best.seconds());
      CHECK(cheapest_all_reduce({.between_nodes = wire, .adding = 8e9, .call = 1e-5}, R, n).seconds() ==
            Approx(best.seconds() + 1e-5));
    }
  CHECK(cheapest_all_reduce(one_link, 1024, 8).by == way::recursive_doubling);
  CHECK(cheapest_all_reduce(one_link, 1, 1e9).seconds() == 0);
}

TEST_CASE("plan: a fit recovers latency, bandwidth and the time of a call", "[parallel][plan]") {
  std::vector<link_sample> exact;
  for (const int R : {2, 4, 7})
    for (const double n : {4., 1e4, 1e6})
      exact.push_back(all_reduce_sample(R, n, 40e-6 + 2 * (R - 1) * (7e-6 + n / R / 3e8)));
  const link_fit fit = fit_link(exact);
  CHECK(fit.link.latency == Approx(7e-6));
  CHECK(fit.link.bandwidth == Approx(3e8));
  CHECK(fit.call == Approx(40e-6));
  CHECK(fit.error < 1e-9);

  // Of single messages, noise of +-1 % in turns.
  std::vector<link_sample> noisy;
  for (int i = 0; i < 12; ++i) {
    const double n = 100 * std::exp2(i);
    noisy.push_back({n, (5e-6 + n / 1e9) * (i % 2 == 0 ? 1.01 : 0.99)});
  }
  const link_fit near = fit_link(noisy);
  CHECK(near.link.latency == Approx(5e-6).epsilon(0.02));
  CHECK(near.link.bandwidth == Approx(1e9).epsilon(0.02));
  CHECK(near.call == 0);
  CHECK(near.error == Approx(0.01).epsilon(0.2));
}

TEST_CASE("plan: a fit has no negative numbers", "[parallel][plan]") {
  const link_fit shrinking = fit_link({{10, 2e-6}, {1000, 1e-6}});
  CHECK(shrinking.link.bandwidth == 0);  // no limit
  CHECK(shrinking.link.latency > 1e-6);
  CHECK(shrinking.link.latency < 2e-6);
  const link_fit no_latency = fit_link({{10, 1e-9}, {1000, 2e-6}});
  CHECK(no_latency.link.latency == 0);
  CHECK(no_latency.link.bandwidth > 0);
  CHECK_THROWS_WITH(fit_link({}), Catch::Contains("0 samples of messages of one size; measure two sizes or more"));
  CHECK_THROWS_WITH(fit_link({{10, 1}, {10, 2}}), Catch::Contains("2 samples of messages of one size"));
  CHECK_THROWS_WITH(fit_link({{10, 1}, {20, 0}}), Catch::Contains("1 messages, 20 bytes and 0 seconds"));
}

TEST_CASE("plan: buckets overlap with the pass", "[parallel][plan]") {
  // A ring of 2 ranks: T(n) = 2 (0.001 + n / 2 / 1e6) = 0.002 + n / 1e6.
  const network_model slow{.between_nodes = {0.001, 1e6}};
  const nn::plan_options ring{.collectives = nn::collective_choice::ring};
  nn::step_trace t = example();
  nn::step_prediction p = nn::predict_step(t, slow, 2, ring);
  // Pass from 0.03; sums end at 0.05 + 0.003, 0.06 + 0.005 and 0.09 + 0.004.
  CHECK(p.step == Approx(0.094 + 0.01));
  CHECK(p.exposed == Approx(0.004));
  CHECK(p.computation == Approx(0.1));
  CHECK(p.communication == Approx(0.003 + 0.005 + 0.004 + 0.002 + 32e-6));
  CHECK(p.latency == Approx(4 * 0.002));

  t.buckets[0].ready = 0.059;  // the link is busy when the others are ready
  CHECK(nn::predict_step(t, slow, 2, ring).step == Approx(0.03 + 0.059 + 0.003 + 0.005 + 0.004 + 0.01));
  t.buffers = {500, 100};  // wait for all
  CHECK(nn::predict_step(t, slow, 2, ring).step == Approx(0.03 + 0.059 + 0.012 + 0.01 + 0.0025 + 0.0021));
  t = example();
  CHECK(nn::predict_step(t, slow, 2, {.collectives = nn::collective_choice::ring, .slowdown = 0.5}).step ==
        Approx(0.03 + 0.09 + 0.004 + 0.01));
  t.forward = 0.001;  // shorter than the first sum of 32 bytes
  CHECK(nn::predict_step(t, slow, 2, ring).step == Approx(0.002032 + 0.06 + 0.004 + 0.01));
  CHECK(nn::predict_step(example(), slow, 1, {.slowdown = 0.5}).step == Approx(0.1));
  CHECK(nn::predict_step(example(), slow, 2).step <= nn::predict_step(example(), slow, 2, ring).step);
}

TEST_CASE("plan: gradients are joined as distributed joins them", "[parallel][plan]") {
  for (const auto& [first, bytes] : {std::pair<index_t, index_t>{1, 1}, {64, 160}, {200, 200}, {4096, 4096}}) {
    generator gen(1);
    nn::sequential model{nn::linear(5, 8, gen), nn::tanh(), nn::linear(8, 7, gen), nn::tanh(), nn::linear(7, 3, gen)};
    const auto buckets = [&](const nn::distributed_options& options) {
      thread_communicator one = thread_communicator::make(1)[0];
      nn::distributed ranks(model, one, options);
      for (int i = 0; i < 2; ++i) ranks.backward(variable(sum(model(ones<float>({2, 5})))), 2);
      return ranks.trace();
    };
    const nn::step_trace joined =
        nn::joined_buckets(buckets({.bucket_bytes = 1, .first_bucket_bytes = 1}), bytes, first);
    const nn::step_trace real = buckets({.bucket_bytes = bytes, .first_bucket_bytes = first});
    INFO(first << " and " << bytes << " bytes");
    index_t gradients = 0;
    for (const nn::step_trace::bucket& b : real.buckets) gradients += b.bytes;
    CHECK(gradients == 4 * model.parameter_count());
    REQUIRE(joined.buckets.size() == real.buckets.size());
    for (std::size_t i = 0; i < real.buckets.size(); ++i) CHECK(joined.buckets[i].bytes == real.buckets[i].bytes);
  }
  CHECK(nn::joined_buckets(example(), 4000, 1).buckets.size() == 3);  // 1000 | 3000 | 2000
  CHECK(nn::joined_buckets(example(), 5000, 1).buckets.back().ready == 0.06);
  CHECK_THROWS_WITH(nn::joined_buckets(example(), 0, 1), Catch::Contains("buckets of 0 and 1 bytes; give at least 1"));
}

TEST_CASE("plan: medians of traces", "[parallel][plan]") {
  std::vector<nn::step_trace> steps(3, example());
  steps[0].backward = 9;
  steps[2].backward = 0.05;
  steps[1].buckets[1].ready = 7;
  const nn::step_trace m = nn::median_trace(steps);
  CHECK(m.backward == 0.06);
  CHECK(m.buckets[1].ready == 0.03);
  steps[1].buckets.pop_back();
  CHECK_THROWS_WITH(nn::median_trace(steps), Catch::Contains("leave out the first step"));
  CHECK_THROWS_WITH(nn::median_trace({}), Catch::Contains("plan: no steps"));
}

TEST_CASE("plan: stragglers and failures", "[parallel][plan]") {
  // Two draws of 1, 2, 4: nine pairs.
  CHECK(nn::mean_of_largest({4, 1, 2}, 2) == Approx((1 * 1 + 3 * 2 + 5 * 4) / 9.));
  CHECK(nn::mean_of_largest({4, 1, 2}, 1) == Approx(7 / 3.));
  CHECK(nn::mean_of_largest({4, 1, 2}, 4096) == Approx(4));
  CHECK_THROWS_WITH(nn::mean_of_largest({}, 1), Catch::Contains("1 draws from 0 values"));

  const nn::failure_prediction f = nn::predict_failures(100, 18, 1000);  // 36000 s apart
  CHECK(f.interval == Approx(std::sqrt(2 * 18 * 36000.)));
  CHECK(f.loss == Approx(std::sqrt(2 * 18 / 36000.)));
  // No other interval loses less.
  for (const double other : {0.5 * f.interval, 0.9 * f.interval, 1.1 * f.interval, 2 * f.interval})
    CHECK(18 / other + other / 2 / 36000 > f.loss);
  CHECK(nn::predict_failures(100, 18, 1000, 360).loss == Approx(f.loss + 0.01));
  CHECK(nn::predict_failures(1000000, 60, 10).loss == 1);
  CHECK(nn::predict_failures(100, 18, 0).loss == 0);
}

TEST_CASE("plan: the report", "[parallel][plan]") {
  nn::step_trace t = example();
  t.buckets.clear();
  for (int i = 0; i < 64; ++i) t.buckets.push_back({1 << 18, 0.06 * (i + 1) / 64});
  std::vector<nn::step_trace> steps(4, t);
  steps[3].forward = 0.05;
  const network_model network{.between_nodes = {5e-6, 3e9}};
  const nn::plan_options options{.checkpoint_seconds = 10, .hours_to_failure = 5000};
  const nn::plan_report report = nn::plan(steps, network, options);
  REQUIRE(report.rows.size() == 13);
  CHECK(report.rows[0].prediction.step == Approx(0.1));
  CHECK(report.rows[0].stragglers == 0);
  for (std::size_t i = 1; i < report.rows.size(); ++i) {
    const nn::plan_row& r = report.rows[i];
    INFO(r.ranks << " ranks");
    CHECK(r.efficiency() < report.rows[i - 1].efficiency());
    CHECK(r.step() >= report.rows[i - 1].step());
    CHECK(r.step_at_low_bandwidth >= r.step());
    CHECK(r.step_at_high_bandwidth <= r.step());
    // No given size is better than the best one, up to the part of 0.001 that a smaller one must gain.
    for (index_t bytes = 1 << 12; bytes <= 1 << 25; bytes *= 2) {
      nn::plan_options o = options;
      o.bucket_bytes = bytes;
      o.first_bucket_bytes = std::min(o.first_bucket_bytes, bytes);
      CHECK(nn::predict_step(t, network, r.ranks, o).step >= 0.998 * r.prediction.step);
    }
  }
  CHECK(report.rows[0].limit() == std::string("computation"));
  const auto limit = [&](const network_model& n, const nn::plan_options& o) {
    return std::string(nn::plan({t}, n, o).rows[0].limit());
  };
  CHECK(limit({.between_nodes = {1e-3, 0}}, {.ranks = {4096}}) == "latency");
  CHECK(limit({.between_nodes = {0, 1e8}}, {.ranks = {64}}) == "bandwidth");
  CHECK(limit({.adding = 1e7}, {.ranks = {64}}) == "adding");
  CHECK(limit({}, {.ranks = {64}, .slowdown = 0.5}) == "slowdown");
  CHECK(limit({}, {.ranks = {4096}, .checkpoint_seconds = 600, .hours_to_failure = 100}) == "failures");
  CHECK(nn::plan(steps, {}, {.ranks = {64}}).rows[0].limit() == std::string("stragglers"));
  const std::string text = report.text();
  CHECK_THAT(text, Catch::Contains("efficiency"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 14);
  CHECK_THROWS_WITH(nn::plan({}, network), Catch::Contains("plan: no steps"));
  CHECK_THROWS_WITH(nn::plan(steps, network, {.ranks = {0}}), Catch::Contains("0 ranks; there must be one or more"));
}

TEST_CASE("plan: numbers that make no sense are refused", "[parallel][plan]") {
  const std::vector<nn::step_trace> steps(3, nn::step_trace{.forward = 0.1, .backward = 0.2, .buckets = {{1000, 0.1}}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const network_model network{.between_nodes = {1e-5, 1e9}};
  const auto text = [&](const nn::plan_options& options) {
    return text_of_error<value_error>([&] { static_cast<void>(nn::plan(steps, network, options)); });
  };
  CHECK(text({}) == "");
  CHECK(has(text({.ranks = {}}), "plan: no numbers of ranks"));
  CHECK(has(text({.ranks = {0}}), "0 ranks; there must be one or more"));
  CHECK(has(text({.bucket_bytes = -1}), "plan: bucket_bytes is -1"));
  CHECK(has(text({.slowdown = nan}), "plan: slowdown is nan"));
  CHECK(has(text({.checkpoint_seconds = -2}), "checkpoint_seconds is -2"));
  CHECK(has(text({.hours_to_failure = -2}), "hours_to_failure is -2"));
  CHECK(has(text({.restart_seconds = nan}), "restart_seconds is nan"));
  const auto text_of_network = [&](const network_model& n) {
    return text_of_error<value_error>([&] { static_cast<void>(nn::plan(steps, n)); });
  };
  CHECK(has(text_of_network({.between_nodes = {-1, 1e9}}), "between_nodes.latency is -1"));
  CHECK(has(text_of_network({.between_nodes = {1, nan}}), "between_nodes.bandwidth is nan"));
  CHECK(has(text_of_network({.between_nodes = {1e-5, 1e9}, .ranks_per_node = 0}), "ranks_per_node is 0"));
  CHECK(has(text_of_network({.between_nodes = {1e-5, 1e9}, .ranks_per_node = 8}),
            "8 ranks on each node, and within_node has no latency and no bandwidth; give them"));
  CHECK(has(text_of_network({.between_nodes = {1e-5, 1e9}, .adding = -1}), "adding is -1"));
  CHECK(has(text_of_error<value_error>([&] { static_cast<void>(nn::plan({nn::step_trace{}}, network)); }),
            "steps that took no time"));
  CHECK(has(text_of_error<value_error>([&] { static_cast<void>(nn::plan({nn::step_trace{.forward = -1}}, network)); }),
            "plan: a trace: forward is -1"));
}

TEST_CASE("plan: emulated links take at least what the plan says for their sums", "[parallel][plan]") {
  const link_model emulated{0.5e-3, 10e6};
  run_ranks(4, {.latency = std::chrono::duration<double>(emulated.latency), .bandwidth = emulated.bandwidth},
            [&](thread_communicator world) {
              for (const link_sample& s : measure_all_reduce(world, {4, 40000}, 3)) {
                const double n = s.bytes * 4 / 6;
                if (s.seconds < all_reduce_cost_of(way::ring, {.between_nodes = emulated}, 4, n).seconds())
                  throw value_error("a sum was faster than its link");
              }
            });
  // A whole step: what sleeps can only take longer.
  run_ranks(
      4, {.latency = std::chrono::duration<double>(emulated.latency), .bandwidth = emulated.bandwidth},
      [&](thread_communicator world) {
        generator gen(1);
        nn::linear<double> model(40, 50, gen);
        nn::distributed ranks(model, world);
        for (int i = 0; i < 2; ++i) {
          const auto start = std::chrono::steady_clock::now();
          ranks.begin(1);
          ranks.backward(variable(sum(model(ones<double>({1, 40})))), 1);
          const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
          nn::step_trace t = ranks.trace();
          t.forward = t.backward = 0;
          t.buckets[0].ready = 0;
          if (took <
              nn::predict_step(t, {.between_nodes = emulated}, 4, {.collectives = nn::collective_choice::ring}).step)
            throw value_error("a step was faster than its link");
        }
      });
  run_ranks(1, {}, [](thread_communicator world) {
    CHECK_THROWS_WITH(measure_all_reduce(world, {4}), Catch::Contains("1 ranks and 9 repeats"));
  });
}

TEST_CASE("plan: a trace has the times of buffers and of the optimizer", "[parallel][plan]") {
  generator gen(1);
  nn::sequential model{nn::linear(4, 6, gen), nn::batch_norm1d<float>(6)};
  thread_communicator one = thread_communicator::make(1)[0];
  nn::distributed ranks(model, one);
  struct batch {
    tensor<float, 2> x;
    index_t size() const { return x.extent(0); }
  };
  const std::vector<batch> batches{{randn<float>(gen, {8, 4})}};
  ranks.run(
      batches, [&](const batch& b) { return variable(sum(model(b.x))); },
      [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  CHECK(ranks.trace().optimizer >= 2e-3);
  REQUIRE(ranks.trace().buffers.size() == 2);  // mean and variance; the number of batches
  CHECK(ranks.trace().buffers[0] == (12 + 2) * 4);
  CHECK(ranks.trace().buffers[1] == (1 + 1) * 8);
}

// sinter/ranks/plan/plan.hpp: what a training step takes on many ranks, from the measured steps of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sinter/ranks/gradient_exchange.hpp"
#include "sinter/ranks/plan/report.hpp"

namespace sinter::nn {

/// How the sums of gradients are made: by the cheapest algorithm for their size, as an ideal library would, or by a
/// ring, as thread_communicator emulates and socket_communicator does. MPI chooses algorithms itself, if not always the
/// cheapest.
enum class collective_choice { cheapest, ring };

struct plan_options {
  std::vector<int> ranks = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  collective_choice collectives = collective_choice::cheapest;
  /// Of gradients, as in distributed_options; 0: plan() tries powers of two, predict_step() leaves the trace's buckets.
  index_t bucket_bytes = 0;
  index_t first_bucket_bytes = 1 << 20;  ///< where plan() tries sizes, no more than the one it tries
  double slowdown = 0;                   ///< of a backward pass while sums are under way, as a part of its time
  double checkpoint_seconds = 0;         ///< in which no rank computes
  double hours_to_failure = 0;           ///< mean time between failures of one rank; 0: none fails
  double restart_seconds = 0;            ///< from a failure until ranks compute again
};

namespace detail {

inline void require_trace(const step_trace& t) {
  const auto require = [](const char* name, double x) { sinter::detail::require_measure("plan: a trace", name, x); };
  require("forward", t.forward);
  require("backward", t.backward);
  require("optimizer", t.optimizer);
  for (const step_trace::bucket& b : t.buckets) {
    require("ready of a bucket", b.ready);
    require("bytes of a bucket", static_cast<double>(b.bytes));
  }
  for (const index_t bytes : t.buffers) require("bytes of buffers", static_cast<double>(bytes));
}
inline void require_options(const plan_options& o) {
  const auto require = [](const char* name, double x) { sinter::detail::require_measure("plan", name, x); };
  require("bucket_bytes", static_cast<double>(o.bucket_bytes));
  require("first_bucket_bytes", static_cast<double>(o.first_bucket_bytes));
  require("slowdown", o.slowdown);
  require("checkpoint_seconds", o.checkpoint_seconds);
  require("hours_to_failure", o.hours_to_failure);
  require("restart_seconds", o.restart_seconds);
}

}  // namespace detail

/// The trace whose times are the medians of the traces', one of a step each. Errors: value_error for none, and for
/// traces of different buckets: leave out the first step, after which buckets are put together anew.
inline step_trace median_trace(const std::vector<step_trace>& steps) {
  if (steps.empty()) sinter::detail::refuse<value_error>({"plan: no steps; give the traces of one or more"});
  const auto median = [&](const auto& value) {
    std::vector<double> all;
    for (const step_trace& s : steps) all.push_back(value(s));
    std::sort(all.begin(), all.end());
    return (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
  };
  step_trace m = steps.front();
  m.forward = median([](const step_trace& s) { return s.forward; });
  m.backward = median([](const step_trace& s) { return s.backward; });
  m.waited = median([](const step_trace& s) { return s.waited; });
  m.optimizer = median([](const step_trace& s) { return s.optimizer; });
  for (std::size_t i = 0; i < m.buckets.size(); ++i) {
    for (const step_trace& s : steps)
      if (s.buckets.size() != m.buckets.size() || s.buckets[i].bytes != m.buckets[i].bytes)
        sinter::detail::refuse<value_error>({"plan: traces of different buckets, in number ", static_cast<index_t>(i),
                                             "; leave out the first step, after which they are put together anew"});
    m.buckets[i].ready = median([i](const step_trace& s) { return s.buckets[i].ready; });
  }
  return m;
}

/// The trace with its buckets joined, as `distributed` would with these options if all gradients are of one element
/// type on one device. Buckets are not split: record the trace with
/// `distributed_options{.bucket_bytes = 1, .first_bucket_bytes = 1}`, so that each gradient is one. Errors: value_error
/// for sizes below 1.
inline step_trace joined_buckets(step_trace trace, index_t bucket_bytes, index_t first_bucket_bytes) {
  if (bucket_bytes < 1 || first_bucket_bytes < 1)
    sinter::detail::refuse<value_error>(
        {"plan: buckets of ", bucket_bytes, " and ", first_bucket_bytes, " bytes; give at least 1"});
  std::vector<step_trace::bucket> joined;
  for (const step_trace::bucket& b : trace.buckets) {
    const index_t limit = joined.size() <= 1 ? first_bucket_bytes : bucket_bytes;
    if (joined.empty() || joined.back().bytes + b.bytes > limit) {
      joined.push_back(b);
    } else {
      joined.back().bytes += b.bytes;
      joined.back().ready = std::max(joined.back().ready, b.ready);
    }
  }
  trace.buckets = std::move(joined);
  return trace;
}

/// A step of `ranks` ranks, each of which has as many samples as the one of the trace. With T(n) for the sum of n
/// bytes, buckets of n_j bytes ready r_j seconds after the begin b of the backward pass, and slowdown k on more than
/// one rank: b = max(forward, T(32)), as ranks first tell each other their numbers of samples; sum j ends at c_j =
/// max(c_(j-1), b + r_j (1 + k)) + T(n_j) with c_(-1) = T(32); the step takes max(b + backward (1 + k), c_last) +
/// T(buffers) + optimizer.
///
/// Not modelled: what a rank computes to begin and end a sum, calls of the model itself as those of sync_batch_norm,
/// the reading of batches, and what network_model leaves out. Source: Li et al., "PyTorch Distributed: experiences on
/// accelerating data parallel training", VLDB 2020, for the overlap. Errors: value_error for no ranks, for numbers that
/// are negative or no numbers, and for several ranks on a node whose links were not given.
///
///     const step_prediction p = nn::predict_step(ranks.trace(), network, 64);
///     std::cout << p.step << " s, of which " << p.exposed << " s are waiting\n";
inline step_prediction predict_step(step_trace trace, const network_model& network, int ranks,
                                    const plan_options& options = {}) {
  sinter::detail::require_ranks("predict_step", ranks);
  detail::require_trace(trace);
  detail::require_options(options);
  if (options.bucket_bytes > 0) trace = joined_buckets(trace, options.bucket_bytes, options.first_bucket_bytes);
  step_prediction p;
  index_t largest = 0;
  const auto sum = [&](index_t bytes) {
    const auto n = static_cast<double>(bytes);
    const all_reduce_cost c = options.collectives == collective_choice::cheapest
                                  ? cheapest_all_reduce(network, ranks, n)
                                  : all_reduce_cost_of(all_reduce_algorithm::ring, network, ranks, n);
    p.latency += c.latency;
    p.transfer += c.transfer;
    p.adding += c.adding;
    if (bytes > largest) p.by = c.by;
    largest = std::max(largest, bytes);
    return c.seconds();
  };
  const double slow = ranks > 1 ? 1 + options.slowdown : 1;
  double link = sum(detail::step_word::bytes);
  const double begin = std::max(trace.forward, link);
  for (const step_trace::bucket& b : trace.buckets) link = std::max(link, begin + b.ready * slow) + sum(b.bytes);
  double end = std::max(begin + trace.backward * slow, link);
  for (const index_t bytes : trace.buffers) end += sum(bytes);
  p.computation = trace.forward + trace.backward + trace.optimizer;
  p.slowdown = trace.backward * (slow - 1);
  p.communication = p.latency + p.transfer + p.adding;
  p.step = end + trace.optimizer;
  p.exposed = std::max(0., p.step - p.computation - p.slowdown);
  return p;
}

/// The mean of the largest of so many draws from `values`: with n values x_1 <= ... <= x_n, the sum of
/// x_i ((i / n)^draws - ((i - 1) / n)^draws). For normal values it is about mean + deviation sqrt(2 ln draws) for many
/// draws; here never more than x_n, so that few values give too little for many draws. Errors: value_error for no
/// values and no draws.
inline double mean_of_largest(std::vector<double> values, int draws) {
  if (values.empty() || draws < 1)
    sinter::detail::refuse<value_error>({"mean_of_largest: ", draws, " draws from ",
                                         static_cast<index_t>(values.size()), " values; there must be one or more"});
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double mean = 0, below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double up_to = std::pow(static_cast<double>(i + 1) / n, draws);
    mean += values[i] * (up_to - below);
    below = up_to;
  }
  return mean;
}

/// Checkpoints that take d seconds, for ranks that fail each M seconds on average: with M / R between failures of any
/// of R ranks, the interval between checkpoints that loses least is sqrt(2 d M / R) seconds. Lost is the part
/// d / interval + (interval / 2 + restart) R / M of all time, 1 at most, where nothing is gained any more. Holds for
/// d well below M / R. Source: Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974).
inline failure_prediction predict_failures(int ranks, double checkpoint_seconds, double hours_to_failure,
                                           double restart_seconds = 0) {
  sinter::detail::require_ranks("predict_failures", ranks);
  sinter::detail::require_measure("predict_failures", "checkpoint_seconds", checkpoint_seconds);
  sinter::detail::require_measure("predict_failures", "hours_to_failure", hours_to_failure);
  sinter::detail::require_measure("predict_failures", "restart_seconds", restart_seconds);
  if (!(hours_to_failure > 0)) return {};
  const double apart = hours_to_failure * 3600 / ranks;
  failure_prediction f;
  f.interval = std::sqrt(2 * checkpoint_seconds * apart);
  f.loss = (f.interval > 0 ? checkpoint_seconds / f.interval : 0) + (f.interval / 2 + restart_seconds) / apart;
  f.loss = std::min(1., f.loss);
  return f;
}

/// Predicts steps of 1 to many ranks from the traces of some steps of one rank, after the first; see predict_step() and
/// median_trace(). Ranks wait for the slowest: a step takes mean_of_largest() of the computation of the given steps
/// longer than their mean. What is beyond 64 ranks has not been compared with measurements.
///
///     nn::distributed one(model, thread_communicator::make(1)[0], {.bucket_bytes = 1, .first_bucket_bytes = 1});
///     std::vector<nn::step_trace> steps;          // one.trace() after each step but the first
///     std::cout << nn::plan(steps, {.between_nodes = {5e-6, 3e9}});
///
/// Errors: value_error, as those it calls; for no traces and for an empty list of ranks.
inline plan_report plan(const std::vector<step_trace>& steps, const network_model& network,
                        const plan_options& options = {}) {
  if (options.ranks.empty()) throw value_error("plan: no numbers of ranks; give one or more in .ranks");
  const step_trace trace = median_trace(steps);
  if (trace.forward + trace.backward + trace.optimizer == 0)
    throw value_error("plan: traces of steps that took no time; give trace() after backward()");
  index_t all_bytes = 0;
  for (const step_trace::bucket& b : trace.buckets) all_bytes += b.bytes;
  std::vector<double> computation;
  for (const step_trace& s : steps) computation.push_back(s.forward + s.backward + s.optimizer);
  const auto with_bandwidth = [&](double factor) {
    network_model n = network;
    n.between_nodes.bandwidth *= factor;
    n.within_node.bandwidth *= factor;
    return n;
  };

  plan_report report;
  for (const int ranks : options.ranks) {
    plan_options o = options;
    const auto step_with = [&](index_t bytes, const network_model& n) {
      o.bucket_bytes = bytes;
      o.first_bucket_bytes =
          options.bucket_bytes > 0 ? options.first_bucket_bytes : std::min(options.first_bucket_bytes, bytes);
      return predict_step(trace, n, ranks, o);
    };
    plan_row row{ranks};
    row.bucket_bytes = options.bucket_bytes;
    if (options.bucket_bytes == 0) {
      // From the largest: a smaller one must gain something.
      double best = std::numeric_limits<double>::infinity();
      index_t bytes = index_t{1} << 16;
      while (bytes < all_bytes) bytes *= 2;
      for (; bytes >= index_t{1} << 12; bytes /= 2) {
        const double step = step_with(bytes, network).step;
        if (!(step < 0.999 * best)) continue;
        best = step;
        row.bucket_bytes = bytes;
      }
    }
    row.prediction = step_with(row.bucket_bytes, network);
    row.stragglers = mean_of_largest(computation, ranks) - mean_of_largest(computation, 1);
    row.failures =
        predict_failures(ranks, options.checkpoint_seconds, options.hours_to_failure, options.restart_seconds);
    row.step_at_low_bandwidth = step_with(row.bucket_bytes, with_bandwidth(0.8)).step + row.stragglers;
    row.step_at_high_bandwidth = step_with(row.bucket_bytes, with_bandwidth(1.2)).step + row.stragglers;
    report.rows.push_back(row);
  }
  return report;
}

}  // namespace sinter::nn

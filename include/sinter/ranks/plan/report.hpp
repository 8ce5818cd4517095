// sinter/ranks/plan/report.hpp: what plan() predicts, as numbers and as a table.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/report.hpp"
#include "sinter/ranks/plan/network_model.hpp"

namespace sinter::nn {

/// A step of several ranks, in seconds.
struct step_prediction {
  double step = 0;         ///< computation + slowdown + exposed
  double computation = 0;  ///< forward, backward and optimizer of one rank
  double slowdown = 0;     ///< of the backward pass, by sums that are under way
  double exposed = 0;      ///< waiting for sums; what is left of communication was hidden
  double communication = 0, latency = 0, transfer = 0, adding = 0;  ///< of all sums, and its three parts
  all_reduce_algorithm by = all_reduce_algorithm::ring;             ///< of the largest sum
};

/// What failures cost.
struct failure_prediction {
  double interval = 0;  ///< seconds between checkpoints
  double loss = 0;      ///< part of all time, 0 to 1
};

/// A line of a plan.
struct plan_row {
  int ranks = 1;
  index_t bucket_bytes = 0;  ///< given, or the best
  step_prediction prediction = {};
  double stragglers = 0;  ///< seconds that a step takes longer as ranks wait for the slowest
  failure_prediction failures = {};
  double step_at_low_bandwidth = 0, step_at_high_bandwidth = 0;  ///< with 0.8 and 1.2 of it, buckets as they are

  double step() const { return prediction.step + stragglers; }
  /// Steps per second and rank, as a part of those of one rank that waits for nothing.
  double efficiency() const { return prediction.computation / step() * (1 - failures.loss); }
  /// The largest loss: "latency", "bandwidth" or "adding" (of exposed communication, by their shares in all of it),
  /// "slowdown", "stragglers" or "failures". "computation" where all together cost less than 5 %.
  const char* limit() const {
    if (efficiency() >= 0.95) return "computation";
    const step_prediction& p = prediction;
    const double part = p.communication > 0 ? p.exposed / p.communication : 0;
    const std::pair<double, const char*> losses[] = {
        {p.latency * part, "latency"},
        {p.transfer * part, "bandwidth"},
        {p.adding * part, "adding"},
        {p.slowdown, "slowdown"},
        {stragglers, "stragglers"},
        {failures.loss < 1 ? step() * failures.loss / (1 - failures.loss) : step() * 1e9, "failures"}};
    return std::max_element(std::begin(losses), std::end(losses),
                            [](const auto& a, const auto& b) { return a.first < b.first; })
        ->second;
  }
};

/// What plan() returns.
struct plan_report : sinter::detail::report<plan_report> {
  std::vector<plan_row> rows;

  /// A table, one line for each number of ranks.
  std::string text() const {
    char line[240];
    std::snprintf(line, sizeof line, "%6s %10s %23s %10s %10s %11s %11s %12s %9s  %-18s %s\n", "ranks", "step ms",
                  "bandwidth -20 %, +20 %", "efficiency", "exposed ms", "limit", "bucket KiB", "stragglers ms",
                  "failures", "largest sum by", "checkpoint each");
    std::string lines = line;
    for (const plan_row& r : rows) {
      char interval[32] = "-";
      if (r.failures.interval > 0) std::snprintf(interval, sizeof interval, "%.0f s", r.failures.interval);
      std::snprintf(line, sizeof line,
                    "%6d %10.2f %11.2f %11.2f %8.1f %% %10.2f %11s %11.0f %13.2f %7.2f %%  %-18s %s\n", r.ranks,
                    1e3 * r.step(), 1e3 * r.step_at_low_bandwidth, 1e3 * r.step_at_high_bandwidth, 100 * r.efficiency(),
                    1e3 * r.prediction.exposed, r.limit(), static_cast<double>(r.bucket_bytes) / 1024,
                    1e3 * r.stragglers, 100 * r.failures.loss, r.ranks > 1 ? name_of(r.prediction.by) : "-", interval);
      lines += line;
    }
    return lines;
  }
};

}  // namespace sinter::nn

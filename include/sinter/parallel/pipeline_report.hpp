// sinter/parallel/pipeline_report.hpp: what a step of a pipeline has measured.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "sinter/core/report.hpp"
#include "sinter/parallel/schedule_run.hpp"

namespace sinter::nn {

/// Of one stage.
struct stage_report {
  std::string device;
  double busy = 0;        ///< seconds of forward and backward
  double copies = 0;      ///< seconds that it waited for a copy on its way, with the message there
  double idle = 0;        ///< seconds of the step in which it was not busy, copies included
  double forward = 0;     ///< mean seconds of a microbatch forward
  double backward = 0;    ///< and backward
  index_t in_flight = 0;  ///< most microbatches whose activations it held at once
};

/// What pipeline::step() returns.
struct pipeline_report : sinter::detail::report<pipeline_report> {
  double loss = 0;  ///< of all samples
  index_t samples = 0;
  index_t microbatches = 0;     ///< that the batch was cut into
  double seconds = 0;           ///< from the first stage's first work to the end of all work
  double throughput = 0;        ///< samples per second
  double latency = 0;           ///< mean seconds of a microbatch from the first stage's work to the loss
  double bubble = 0;            ///< measured: 1 - sum of busy / (p * seconds)
  double bubble_formula = 0;    ///< of equal stages: (p - 1) / (m + p - 1)
  double bubble_simulated = 0;  ///< of the schedule with each action's measured time, and messages that take none
  std::vector<stage_report> stages;

  /// A table, one line for each stage.
  std::string text() const {
    char row[240];
    std::snprintf(row, sizeof row,
                  "%lld samples in %lld microbatches: %.1f ms, %.1f samples/s, latency %.1f ms; bubble %.1f %%, by the "
                  "formula %.1f %%, simulated %.1f %%\n",
                  static_cast<long long>(samples), static_cast<long long>(microbatches), 1e3 * seconds, throughput,
                  1e3 * latency, 100 * bubble, 100 * bubble_formula, 100 * bubble_simulated);
    std::string lines = row;
    for (const stage_report& s : stages) {
      std::snprintf(row, sizeof row,
                    "%-8s busy %.1f ms, idle %.1f ms, of which copies %.1f ms; forward %.1f ms, backward %.1f ms; in "
                    "flight %lld\n",
                    s.device.c_str(), 1e3 * s.busy, 1e3 * s.idle, 1e3 * s.copies, 1e3 * s.forward, 1e3 * s.backward,
                    static_cast<long long>(s.in_flight));
      lines += row;
    }
    return lines;
  }
};

namespace detail {

/// The times in a report, from those of a run that has ended well.
inline void fill_times(pipeline_report& r, const schedule& plan, const sinter::detail::schedule_run& run) {
  const int p = plan.stages();
  const auto m = static_cast<double>(plan.microbatches());
  double first = run.times.front().front().begin, last = 0, busy = 0, latency = 0;
  std::vector<std::vector<double>> seconds;
  for (int i = 0; i < p; ++i) {
    stage_report& s = r.stages[static_cast<std::size_t>(i)];
    seconds.emplace_back();
    for (std::size_t k = 0; k < plan.of(i).size(); ++k) {
      const sinter::detail::action_times& t = run.times[static_cast<std::size_t>(i)][k];
      const bool forward = plan.of(i)[k].way == direction::forward;
      seconds.back().push_back(t.end - t.begin);
      (forward ? s.forward : s.backward) += (t.end - t.begin) / m;
      s.busy += t.end - t.begin;
      s.copies += t.begin - t.arrived;
      if (forward && i == 0) latency -= t.begin / m;
      if (forward && i == p - 1) latency += t.end / m;
      last = std::max(last, t.end);
    }
    busy += s.busy;
  }
  r.microbatches = plan.microbatches();
  r.seconds = last - first;
  r.throughput = static_cast<double>(r.samples) / r.seconds;
  r.latency = latency;
  for (stage_report& s : r.stages) s.idle = r.seconds - s.busy;
  r.bubble = 1 - busy / (p * r.seconds);
  r.bubble_formula = (p - 1) / (m + p - 1);
  r.bubble_simulated = plan.simulated(seconds).bubble;
}

}  // namespace detail
}  // namespace sinter::nn

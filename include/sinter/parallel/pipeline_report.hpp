// sinter/parallel/pipeline_report.hpp: what a step of a pipeline has measured.
#pragma once

#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

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
struct pipeline_report {
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
  friend std::ostream& operator<<(std::ostream& out, const pipeline_report& r) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(1);
    text << r.samples << " samples in " << r.microbatches << " microbatches: " << 1e3 * r.seconds << " ms, "
         << r.throughput << " samples/s, latency " << 1e3 * r.latency << " ms; bubble " << 100 * r.bubble
         << " %, by the formula " << 100 * r.bubble_formula << " %, simulated " << 100 * r.bubble_simulated << " %\n";
    for (const stage_report& s : r.stages)
      text << std::left << std::setw(8) << s.device << std::right << " busy " << 1e3 * s.busy << " ms, idle "
           << 1e3 * s.idle << " ms, of which copies " << 1e3 * s.copies << " ms; forward " << 1e3 * s.forward
           << " ms, backward " << 1e3 * s.backward << " ms; in flight " << s.in_flight << '\n';
    return out << text.str();
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

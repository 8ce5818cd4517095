// sinter/parallel/advice.hpp: what advise() has measured, its answer, and both as text.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sinter/core/error.hpp"
#include "sinter/core/report.hpp"
#include "sinter/parallel/placement_cost.hpp"
#include "sinter/parallel/segment_times.hpp"

namespace sinter::nn {

/// Layers between two candidate cuts.
struct segment_advice {
  /// On one device. The limit is what takes most of the time: "arithmetic" (at the rate of a product in caches),
  /// "weight traffic" (parameters read twice and their gradients written, at the rate of a pass over memory, and the
  /// update), or "other work" (what is left: passes over values, pooling, copies of the batch).
  struct cost {
    measured_time forward, backward, update;
    double bytes = 0;  ///< parameters, gradients, state of the optimizer, and what forward keeps for backward
    const char* limit = "";
    double seconds() const { return forward.median + backward.median + update.median; }
  };
  std::size_t first_layer, last_layer;  ///< the last one is in it
  index_t multiply_adds = 0;            ///< of a forward; 0 for layers that do not say
  index_t parameter_bytes = 0;
  std::vector<cost> on;  ///< each device
};

/// A copy before a layer: of the value from one device to the other, and of its gradient back.
struct transfer_advice {
  std::size_t layer;
  int from, to;
  index_t bytes;
  measured_time value, gradient;
};

enum class placement_kind { one_device, serial, pipelined };

/// A placement that was run.
struct placement_advice {
  placement_kind kind;
  std::vector<int> device;  ///< of each segment
  double predicted = 0;
  measured_time measured;
  bool fits = true;  ///< into the memory that the options allow; what does not was not run
  std::string code;  ///< for the program
};

/// What advise() returns.
struct advice : sinter::detail::report<advice> {
  std::vector<std::string> devices;
  std::vector<double> multiply_adds_per_second, bytes_per_second;  ///< of each device
  std::vector<segment_advice> segments;
  std::vector<transfer_advice> transfers;
  std::vector<double> additivity;            ///< of each device: sum of the segments / the chain in one piece
  std::vector<placement_advice> placements;  ///< those on one device first
  int best = -1;                             ///< the answer's number among the placements; -1 if nothing fits
  bool several_devices = false;              ///< does it pay to use more than one?
  std::vector<placement_advice> cuts;        ///< with every_cut: the first k segments on the first device
  double rank_correlation = std::nan("");    ///< Spearman's, of their predicted and measured times
  std::string verdict;

  /// Errors: value_error if nothing fits into memory.
  const placement_advice& answer() const {
    if (best < 0) throw value_error("advice: no placement fits into memory");
    return placements[static_cast<std::size_t>(best)];
  }
  std::string text() const;
};

namespace detail {

/// Spearman's rank correlation; equal values share the mean of their ranks.
inline double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto ranks = [](const std::vector<double>& x) {
    std::vector<double> r;
    for (const double one : x) {
      const auto less = std::count_if(x.begin(), x.end(), [one](double other) { return other < one; });
      const auto equal = std::count(x.begin(), x.end(), one);
      r.push_back(static_cast<double>(less) + static_cast<double>(equal - 1) / 2);
    }
    return r;
  };
  const std::vector<double> p = ranks(a), q = ranks(b);
  const double mean = static_cast<double>(p.size() - 1) / 2;
  double pq = 0, pp = 0, qq = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    pq += (p[i] - mean) * (q[i] - mean);
    pp += (p[i] - mean) * (p[i] - mean);
    qq += (q[i] - mean) * (q[i] - mean);
  }
  return pq / std::sqrt(pp * qq);
}

template <class... A>
std::string formatted(const char* format, A... a) {
  char row[256];
  std::snprintf(row, sizeof row, format, a...);
  return row;
}
inline std::string milliseconds(double seconds) { return formatted("%.3f ms", 1e3 * seconds); }

/// "layers 3 to 5".
inline std::string layers_text(std::size_t first, std::size_t last) {
  return first == last ? "layer " + std::to_string(first)
                       : "layers " + std::to_string(first) + " to " + std::to_string(last);
}

/// nn::placed<...>(chain) for segments with these first layers.
inline std::string placed_code(const std::vector<std::size_t>& first_layers, const std::vector<int>& device,
                               const std::vector<std::string>& in_code) {
  std::string cuts;
  for (std::size_t s = 0; s < device.size(); ++s) {
    if (s > 0 && device[s] == device[s - 1]) continue;
    cuts += (cuts.empty() ? "" : ", ") + std::string("nn::cut<") + std::to_string(first_layers[s]) + ", " +
            in_code[static_cast<std::size_t>(device[s])] + ">";
  }
  return "auto model = nn::placed<" + cuts + ">(chain);";
}

/// Why a placement takes longer or shorter than all segments on `home`: its segments elsewhere and its transfers.
inline std::string reasons(const advice& a, const placement_advice& p, int home) {
  std::string text;
  double copies = 0;
  for (const transfer_advice& t : a.transfers)
    for (std::size_t s = 1; s < p.device.size(); ++s)
      if (a.segments[s].first_layer == t.layer && p.device[s - 1] == t.from && p.device[s] == t.to)
        copies += t.value.median + t.gradient.median;
  for (std::size_t s = 0; s < p.device.size();) {
    std::size_t end = s;
    double gain = 0, longest = -1;
    const char* limit = "";
    for (; end < p.device.size() && p.device[end] == p.device[s]; ++end) {
      const auto& there = a.segments[end].on[static_cast<std::size_t>(p.device[s])];
      const auto& here = a.segments[end].on[static_cast<std::size_t>(home)];
      gain += here.seconds() - there.seconds();
      if (std::fabs(here.seconds() - there.seconds()) <= longest) continue;
      longest = std::fabs(here.seconds() - there.seconds());
      limit = here.seconds() > there.seconds() ? here.limit : there.limit;
    }
    if (p.device[s] != home)
      text += layers_text(a.segments[s].first_layer, a.segments[end - 1].last_layer) +
              (gain > 0 ? " gain " : " lose ") + milliseconds(std::fabs(gain)) + " on " +
              a.devices[static_cast<std::size_t>(p.device[s])] + " (" + limit + "), ";
    s = end;
  }
  if (p.kind == placement_kind::pipelined) text += "the stages work at the same time, ";
  return text + "transfers take " + milliseconds(copies);
}

/// Sets `best`, `several_devices` and the verdict.
inline void judge(advice& a) {
  int one = -1, several = -1;
  const auto better = [&a](int i, int than) {
    const auto& list = a.placements;
    return than < 0 ||
           list[static_cast<std::size_t>(i)].measured.median < list[static_cast<std::size_t>(than)].measured.median;
  };
  for (int i = 0; i < static_cast<int>(a.placements.size()); ++i) {
    const placement_advice& p = a.placements[static_cast<std::size_t>(i)];
    if (!p.fits) continue;
    int& of_kind = p.kind == placement_kind::one_device ? one : several;
    if (better(i, of_kind)) of_kind = i;
  }
  if (one < 0 && several < 0) {
    a.verdict = "Nothing: no placement fits into memory.";
    return;
  }
  const auto at = [&a](int i) -> const placement_advice& { return a.placements[static_cast<std::size_t>(i)]; };
  const auto name = [&](int i) { return a.devices[static_cast<std::size_t>(at(i).device[0])]; };
  if (one < 0) {
    a.best = several;
    a.several_devices = true;
    a.verdict = "Yes: no device alone has the memory (memory). " + milliseconds(at(several).measured.median) +
                " a step with\n  " + at(several).code;
    return;
  }
  const std::string alone = name(one) + " alone takes " + milliseconds(at(one).measured.median) + " a step";
  if (several < 0) {
    a.best = one;
    a.verdict = "No: " + alone + "; nothing over several devices fits into memory.";
    return;
  }
  const double gain = at(one).measured.median - at(several).measured.median;
  const double noise = (at(one).measured.spread + at(several).measured.spread) / 2;
  a.several_devices = gain > noise;
  a.best = a.several_devices ? several : one;
  const int home = at(one).device[0];
  const std::string other = milliseconds(at(several).measured.median) + " with\n  " + at(several).code + "\n  ";
  a.verdict = (a.several_devices ? "Yes: "
               : gain > 0        ? "No, not for sure: "
                                 : "No: ") +
              alone + ", and " + other + reasons(a, at(several), home) +
              formatted("; %.2f times as fast", at(one).measured.median / at(several).measured.median) +
              (gain > 0 && !a.several_devices ? ", which is less than the runs differ" : "") + ".";
}

}  // namespace detail

inline std::string advice::text() const {
  using detail::formatted;
  const auto ms = [](double s) { return 1e3 * s; };
  const auto name = [this](int d) { return devices[static_cast<std::size_t>(d)].c_str(); };
  std::string lines;
  for (std::size_t d = 0; d < devices.size(); ++d)
    lines +=
        formatted("%s: %.1f G multiply-adds/s, %.1f GB/s; sum of segments / chain in one piece %.3f\n",
                  devices[d].c_str(), 1e-9 * multiply_adds_per_second[d], 1e-9 * bytes_per_second[d], additivity[d]);
  lines += formatted("\n%-16s %-8s %10s %10s %10s %8s %10s  %s\n", "segment", "device", "forward ms", "backward",
                     "update", "+-", "MB", "most of it");
  for (const segment_advice& s : segments)
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const auto& c = s.on[d];
      lines += formatted("%-16s %-8s %10.3f %10.3f %10.3f %8.3f %10.2f  %s\n",
                         d == 0 ? detail::layers_text(s.first_layer, s.last_layer).c_str() : "", devices[d].c_str(),
                         ms(c.forward.median), ms(c.backward.median), ms(c.update.median),
                         ms(c.forward.spread + c.backward.spread + c.update.spread), 1e-6 * c.bytes, c.limit);
    }
  if (!transfers.empty())
    lines += formatted("\n%-16s %-20s %12s %10s %12s\n", "transfer", "", "bytes", "value ms", "gradient ms");
  for (const transfer_advice& t : transfers)
    lines += formatted("before layer %-3zu %-8s => %-8s %12lld %10.3f %12.3f\n", t.layer, name(t.from), name(t.to),
                       static_cast<long long>(t.bytes), ms(t.value.median), ms(t.gradient.median));
  lines += formatted("\n%12s %12s %8s  %s\n", "predicted ms", "measured ms", "+-", "placement");
  const auto add = [&](const placement_advice& p) {
    if (!p.fits)
      lines += formatted("%12.3f %12s %8s  ", ms(p.predicted), "-", "-") + p.code + "  // does not fit into memory\n";
    else
      lines += formatted("%12.3f %12.3f %8.3f  ", ms(p.predicted), ms(p.measured.median), ms(p.measured.spread)) +
               p.code + "\n";
  };
  for (const placement_advice& p : placements) add(p);
  if (!cuts.empty()) {
    lines += "\nevery cut between " + devices[0] + " and " + devices[1] + "\n";
    for (const placement_advice& p : cuts) add(p);
    lines += formatted("rank correlation of predicted and measured times: %.3f\n", rank_correlation);
  }
  return lines + "\n" + verdict + "\n";
}

}  // namespace sinter::nn

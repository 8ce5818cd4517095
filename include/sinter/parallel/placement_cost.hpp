// sinter/parallel/placement_cost.hpp: the cheapest placement of a chain by a table of costs, found exactly.
#pragma once

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "sinter/core/types.hpp"

namespace sinter::nn {

/// What a chain of segments costs on each of some devices. Seconds and bytes.
class placement_costs {
 public:
  placement_costs(int segments, int devices)
      : segments_(segments),
        devices_(devices),
        work_(cells(segments, devices), 0),
        update_(work_),
        bytes_(work_),
        transfer_(cells(segments, devices * devices), 0),
        capacity_(cells(1, devices), std::numeric_limits<double>::infinity()) {}

  int segments() const { return segments_; }
  int devices() const { return devices_; }

  /// Forward and backward of segment s on device d; in a pipeline those of one microbatch.
  double& work(int s, int d) { return work_[at(s, d)]; }
  double work(int s, int d) const { return work_[at(s, d)]; }
  /// The update of its parameters, once a step.
  double& update(int s, int d) { return update_[at(s, d)]; }
  double update(int s, int d) const { return update_[at(s, d)]; }
  /// What segment s holds on device d during a step.
  double& bytes(int s, int d) { return bytes_[at(s, d)]; }
  double bytes(int s, int d) const { return bytes_[at(s, d)]; }
  /// The value copied from `from` to `to` before segment s, and its gradient copied back.
  double& transfer(int s, int from, int to) { return transfer_[at(s, from * devices_ + to, devices_ * devices_)]; }
  double transfer(int s, int from, int to) const {
    return from == to ? 0 : transfer_[at(s, from * devices_ + to, devices_ * devices_)];
  }
  /// The bytes that device d has; infinity where it is not limited.
  double& capacity(int d) { return capacity_[at(0, d)]; }
  double capacity(int d) const { return capacity_[at(0, d)]; }

 private:
  static std::size_t cells(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }
  std::size_t at(int s, int column) const { return at(s, column, devices_); }
  static std::size_t at(int s, int column, int columns) { return cells(s, columns) + static_cast<std::size_t>(column); }

  int segments_, devices_;
  std::vector<double> work_, update_, bytes_, transfer_, capacity_;
};

/// A device for each segment, and the seconds of a step. Empty where nothing fits into memory.
struct placement {
  std::vector<int> device;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Do the segments fit into the memory of the devices?
inline bool fits(const placement_costs& c, const std::vector<int>& device) {
  std::vector<double> used(static_cast<std::size_t>(c.devices()), 0);
  for (int s = 0; s < c.segments(); ++s) {
    const int d = device[static_cast<std::size_t>(s)];
    used[static_cast<std::size_t>(d)] += c.bytes(s, d);
  }
  for (int d = 0; d < c.devices(); ++d)
    if (used[static_cast<std::size_t>(d)] > c.capacity(d)) return false;
  return true;
}

/// Seconds of a step in which one segment runs after the other: all work, updates and transfers.
inline double serial_seconds(const placement_costs& c, const std::vector<int>& device) {
  double sum = 0;
  for (int s = 0; s < c.segments(); ++s) {
    const int d = device[static_cast<std::size_t>(s)];
    sum += c.work(s, d) + c.update(s, d);
    if (s > 0) sum += c.transfer(s, device[static_cast<std::size_t>(s - 1)], d);
  }
  return sum;
}

/// Seconds of a step of m microbatches in a pipeline: sum t + (m - 1) max t over its stages, and the updates; t is the
/// work of a stage and the transfers before it. Infinity where a device comes back.
inline double pipelined_seconds(const placement_costs& c, const std::vector<int>& device, int m) {
  double sum = 0, updates = 0, longest = 0, stage = 0;
  std::vector<bool> used(static_cast<std::size_t>(c.devices()), false);
  for (int s = 0; s < c.segments(); ++s) {
    const int d = device[static_cast<std::size_t>(s)];
    const int before = s > 0 ? device[static_cast<std::size_t>(s - 1)] : -1;
    if (d != before) {
      if (used[static_cast<std::size_t>(d)]) return std::numeric_limits<double>::infinity();
      used[static_cast<std::size_t>(d)] = true;
      stage = s > 0 ? c.transfer(s, before, d) : 0;
      sum += stage;
    }
    stage += c.work(s, d);
    sum += c.work(s, d);
    longest = std::max(longest, stage);
    updates += c.update(s, d);
  }
  return sum + (m - 1) * longest + updates;
}

/// The n cheapest placements of a serial step that fit into memory, the cheapest first; fewer if there are fewer.
/// Exact: best[s][d] = t_s(d) + min over e of (best[s-1][e] + transfer(e, d)), with every sum of which fewer than n
/// others are at once as quick and as small on each limited device.
inline std::vector<placement> best_serial(const placement_costs& c, int n = 1) {
  struct label {
    double seconds;
    std::vector<double> used;  ///< bytes on each device
    int device;
    std::size_t before;  ///< its place among the labels of the segment before
  };
  const int devices = c.devices();
  std::vector<std::vector<label>> levels;
  const auto is_no_better = [&](const label& a, const label& than) {
    if (a.device != than.device || a.seconds < than.seconds) return false;
    for (int d = 0; d < devices; ++d) {
      const auto i = static_cast<std::size_t>(d);
      if (c.capacity(d) < std::numeric_limits<double>::infinity() && a.used[i] < than.used[i]) return false;
    }
    return true;
  };
  for (int s = 0; s < c.segments(); ++s) {
    std::vector<label> found;
    const auto extend = [&](const label* before, std::size_t place) {
      for (int d = 0; d < devices; ++d) {
        label next{c.work(s, d) + c.update(s, d), std::vector<double>(static_cast<std::size_t>(devices), 0), d, place};
        if (before != nullptr) {
          next.seconds += before->seconds + c.transfer(s, before->device, d);
          next.used = before->used;
        }
        double& used = next.used[static_cast<std::size_t>(d)];
        used += c.bytes(s, d);
        if (used <= c.capacity(d)) found.push_back(std::move(next));
      }
    };
    if (s == 0) extend(nullptr, 0);
    else
      for (std::size_t i = 0; i < levels.back().size(); ++i) extend(&levels.back()[i], i);
    std::sort(found.begin(), found.end(), [](const label& a, const label& b) {
      return std::tie(a.seconds, a.before, a.device) < std::tie(b.seconds, b.before, b.device);
    });
    std::vector<label> kept;
    for (label& one : found) {
      const auto better =
          std::count_if(kept.begin(), kept.end(), [&](const label& other) { return is_no_better(one, other); });
      if (better < n) kept.push_back(std::move(one));
    }
    levels.push_back(std::move(kept));
  }
  std::vector<placement> best;
  for (const label& last : levels.back()) {
    if (static_cast<int>(best.size()) == n) break;
    placement p{std::vector<int>(static_cast<std::size_t>(c.segments())), last.seconds};
    const label* now = &last;
    for (std::size_t s = levels.size(); s-- > 0;) {
      p.device[s] = now->device;
      if (s > 0) now = &levels[s - 1][now->before];
    }
    best.push_back(std::move(p));
  }
  return best;
}

namespace detail {

/// The stages of a pipeline, none longer than a limit, whose sum is least.
class pipeline_search {
 public:
  explicit pipeline_search(const placement_costs& c) : c_(c), sets_(1 << c.devices()) {}

  /// t of segments [begin, end) on d, behind a stage on `before` (-1: none); infinity where memory does not do.
  double stage(int begin, int end, int before, int d) const {
    double t = begin > 0 ? c_.transfer(begin, before, d) : 0, bytes = 0;
    for (int s = begin; s < end; ++s) {
      t += c_.work(s, d);
      bytes += c_.bytes(s, d);
    }
    return bytes <= c_.capacity(d) ? t : std::numeric_limits<double>::infinity();
  }

  placement search(double limit) {
    const int segments = c_.segments();
    table_.assign(static_cast<std::size_t>((segments + 1) * sets_ * c_.devices()), {});
    for (int end = 1; end <= segments; ++end)
      for (int begin = 0; begin < end; ++begin)
        for (int d = 0; d < c_.devices(); ++d) {
          if (begin == 0) add({0, 0, -1}, 0, end, d, limit);
          else
            for (int set = 1; set < sets_; ++set)
              for (int e = 0; e < c_.devices(); ++e)
                if ((set >> d & 1) == 0 && e != d) add({begin, set, e}, at(begin, set, e).sum, end, d, limit);
        }
    placement best;
    key last{};
    for (int set = 1; set < sets_; ++set)
      for (int d = 0; d < c_.devices(); ++d)
        if (at(segments, set, d).sum < best.seconds) {
          best.seconds = at(segments, set, d).sum;
          last = {segments, set, d};
        }
    if (last.end == 0) return {};
    best.device.resize(static_cast<std::size_t>(segments));
    while (last.end > 0) {
      const key before = at(last.end, last.set, last.device).before;
      for (int s = before.end; s < last.end; ++s) best.device[static_cast<std::size_t>(s)] = last.device;
      last = before;
    }
    return best;
  }

 private:
  struct key {
    int end = 0, set = 0, device = -1;
  };
  struct cell {
    double sum = std::numeric_limits<double>::infinity();
    key before;
  };
  cell& at(int end, int set, int device) {
    return table_[static_cast<std::size_t>((end * sets_ + set) * c_.devices() + device)];
  }
  void add(const key& before, double sum, int end, int d, double limit) {
    if (sum == std::numeric_limits<double>::infinity()) return;
    const double t = stage(before.end, end, before.device, d);
    if (t > limit) return;
    sum += t;
    for (int s = before.end; s < end; ++s) sum += c_.update(s, d);
    cell& to = at(end, before.set | 1 << d, d);
    if (sum < to.sum) to = {sum, before};
  }

  const placement_costs& c_;
  int sets_;  ///< of devices
  std::vector<cell> table_;
};

}  // namespace detail

/// The cheapest pipeline for m microbatches, of stages of neighbouring segments on different devices, that fits into
/// memory. Exact: for every length T that a stage can have, the least sum of stages none of which is longer, and
/// (m - 1) T.
inline placement best_pipelined(const placement_costs& c, int m) {
  detail::pipeline_search stages(c);
  std::vector<double> lengths;
  for (int begin = 0; begin < c.segments(); ++begin)
    for (int end = begin + 1; end <= c.segments(); ++end)
      for (int d = 0; d < c.devices(); ++d)
        for (int e = 0; e < c.devices(); ++e) {
          if (begin > 0 ? e == d : e > 0) continue;
          const double t = stages.stage(begin, end, e, d);
          if (t < std::numeric_limits<double>::infinity()) lengths.push_back(t);
        }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  placement best;
  for (const double limit : lengths) {
    if ((m - 1) * limit >= best.seconds) break;
    placement p = stages.search(limit);
    if (p.device.empty()) continue;
    p.seconds = pipelined_seconds(c, p.device, m);
    if (p.seconds < best.seconds) best = std::move(p);
  }
  return best;
}

}  // namespace sinter::nn

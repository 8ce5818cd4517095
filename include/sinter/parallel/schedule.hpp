// sinter/parallel/schedule.hpp: in which order each stage of a pipeline works on its microbatches, as data.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"

namespace sinter::nn {

/// Whether a stage runs a microbatch forward or backward.
enum class direction : unsigned char { forward, backward };

/// One piece of work of a stage.
struct stage_action {
  direction way;
  index_t microbatch;
  bool operator==(const stage_action&) const = default;
};

/// What a schedule takes where each action takes a known time and messages take none.
struct schedule_times {
  double span = 0;         ///< from the first action's begin to the last one's end
  double busy = 0;         ///< of all stages together
  double bubble = 0;       ///< 1 - busy / (stages * span)
  std::vector<int> order;  ///< the stages of all actions, in an order in which one thread can run them
};

/// The actions of p stages on m microbatches: one list for each stage. A stage begins an action when the microbatch has
/// arrived from its neighbour and the queue to the next neighbour has room; a queue has `queue_places` places.
///
/// The constructor runs the lists with such queues, so a schedule that exists ends. Errors: value_error unless each
/// stage goes once forward and then once backward with each microbatch, each stage takes microbatches in the order in
/// which its neighbour sends them, and no stages wait for one another.
///
///     const auto plan = nn::schedule::one_f_one_b(4, 8);
///     const nn::schedule own({{{nn::direction::forward, 0}, {nn::direction::backward, 0}}});  // 1 stage, 1 microbatch
class schedule {
 public:
  using actions = std::vector<stage_action>;
  static constexpr index_t queue_places = 2;

  explicit schedule(std::vector<actions> stages) : stages_(std::move(stages)) {
    check_lists();
    serial_order_ = run(nullptr).order;
  }

  /// All microbatches forward, then all backward: a stage holds the activations of all m. Y. Huang et al., NeurIPS
  /// (2019). Errors: value_error for less than 1 stage or microbatch.
  static schedule gpipe(int stages, index_t microbatches) {
    check_counts(stages, microbatches);
    actions one;
    for (const direction way : {direction::forward, direction::backward})
      for (index_t j = 0; j < microbatches; ++j) one.push_back({way, j});
    return schedule(std::vector<actions>(static_cast<std::size_t>(stages), one));
  }

  /// One forward, one backward in turn, after min(m, p - 1 - i) forwards in stage i: it holds the activations of
  /// min(m, p - i) microbatches. D. Narayanan et al., SOSP (2019). Errors: as gpipe.
  static schedule one_f_one_b(int stages, index_t microbatches) {
    check_counts(stages, microbatches);
    std::vector<actions> all;
    for (int i = 0; i < stages; ++i) {
      const index_t ahead = std::min<index_t>(microbatches, stages - 1 - i);
      actions one;
      for (index_t j = 0; j < ahead; ++j) one.push_back({direction::forward, j});
      for (index_t j = 0; j < microbatches; ++j) {
        if (ahead + j < microbatches) one.push_back({direction::forward, ahead + j});
        one.push_back({direction::backward, j});
      }
      all.push_back(std::move(one));
    }
    return schedule(std::move(all));
  }

  int stages() const noexcept { return static_cast<int>(stages_.size()); }
  index_t microbatches() const noexcept { return static_cast<index_t>(stages_.front().size()) / 2; }
  const actions& of(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  const std::vector<int>& serial_order() const noexcept { return serial_order_; }

  /// Most microbatches that a stage has run forward and not yet backward.
  index_t in_flight(int stage) const {
    index_t now = 0, most = 0;
    for (const stage_action& a : of(stage)) most = std::max(most, now += a.way == direction::forward ? 1 : -1);
    return most;
  }

  /// The schedule where action number k of stage i takes seconds[i][k].
  schedule_times simulated(const std::vector<std::vector<double>>& seconds) const { return run(&seconds); }
  /// The schedule where every stage takes the same time for a microbatch.
  schedule_times simulated(double forward, double backward) const {
    std::vector<std::vector<double>> seconds;
    for (const actions& list : stages_) {
      seconds.emplace_back();
      for (const stage_action& a : list) seconds.back().push_back(a.way == direction::forward ? forward : backward);
    }
    return run(&seconds);
  }

 private:
  static void check_counts(int stages, index_t microbatches) {
    if (stages < 1)
      sinter::detail::refuse<value_error>({"schedule: the number of stages is ", stages, "; pass 1 or more"});
    if (microbatches < 1)
      sinter::detail::refuse<value_error>(
          {"schedule: the number of microbatches is ", microbatches, "; pass 1 or more"});
  }
  static const char* name(direction way) { return way == direction::forward ? "forward" : "backward"; }

  void check_lists() const {
    if (stages_.empty())
      sinter::detail::refuse<value_error>(
          {"schedule: the list of stages is empty; give each stage its list of actions"});
    const index_t m = microbatches();
    for (int i = 0; i < stages(); ++i) {
      std::vector<int> done(static_cast<std::size_t>(m), 0);
      for (const stage_action& a : of(i)) {
        if (a.microbatch < 0 || a.microbatch >= m)
          sinter::detail::refuse<value_error>({"schedule: stage ", i, " runs microbatch ", a.microbatch,
                                               ", but stage 0 runs only ", m,
                                               ", numbered from 0; let all stages run the same ones"});
        int& count = done[static_cast<std::size_t>(a.microbatch)];
        if (count != static_cast<int>(a.way))
          sinter::detail::refuse<value_error>({"schedule: stage ", i, " runs microbatch ", a.microbatch, " ",
                                               name(a.way),
                                               " out of turn; it must run each once forward, then once backward"});
        ++count;
      }
      for (index_t j = 0; j < m; ++j)
        if (done[static_cast<std::size_t>(j)] != 2)
          sinter::detail::refuse<value_error>(
              {"schedule: stage ", i, " does not run microbatch ", j, " forward and backward; list both"});
      if (m == 0 || static_cast<index_t>(of(i).size()) != 2 * m)
        sinter::detail::refuse<value_error>({"schedule: stage ", i, " has ", of(i).size(),
                                             " actions; list 2 for each microbatch, of which there must be 1 or more"});
    }
  }

  /// What has gone through the queue into a stage so far.
  struct queue {
    actions sent;
    std::vector<double> sent_at, taken_at;
  };

  /// Runs the lists, with no time for an action where seconds is null.
  schedule_times run(const std::vector<std::vector<double>>* seconds) const {
    const std::size_t p = stages_.size();
    std::vector<queue> into[2] = {std::vector<queue>(p), std::vector<queue>(p)};
    std::vector<std::size_t> at(p, 0);
    std::vector<double> clock(p, 0);
    schedule_times t;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < p; ++i) {
        while (at[i] < stages_[i].size()) {
          const stage_action a = stages_[i][at[i]];
          const bool forward = a.way == direction::forward;
          std::vector<queue>& queues = into[forward ? 0 : 1];
          queue* const from = (forward ? i > 0 : i + 1 < p) ? &queues[i] : nullptr;
          queue* const to = (forward ? i + 1 < p : i > 0) ? &queues[forward ? i + 1 : i - 1] : nullptr;
          double begin = clock[i];
          if (from != nullptr) {
            const std::size_t k = from->taken_at.size();
            if (k == from->sent.size()) break;
            if (from->sent[k] != a)
              sinter::detail::refuse<value_error>({"schedule: stage ", static_cast<index_t>(i), " runs microbatch ",
                                                   a.microbatch, " ", name(a.way), " when microbatch ",
                                                   from->sent[k].microbatch, " arrives"});
            begin = std::max(begin, from->sent_at[k]);
          }
          if (to != nullptr && to->sent.size() >= std::size_t{queue_places}) {
            const std::size_t k = to->sent.size() - std::size_t{queue_places};
            if (k >= to->taken_at.size()) break;
            begin = std::max(begin, to->taken_at[k]);
          }
          if (from != nullptr) from->taken_at.push_back(begin);
          const double took = seconds == nullptr ? 0 : seconds->at(i).at(at[i]);
          clock[i] = begin + took;
          t.busy += took;
          if (to != nullptr) {
            to->sent.push_back(a);
            to->sent_at.push_back(clock[i]);
          }
          t.order.push_back(static_cast<int>(i));
          ++at[i];
          moved = true;
        }
      }
    }
    check_end(at);
    t.span = *std::max_element(clock.begin(), clock.end());
    if (t.span > 0) t.bubble = 1 - t.busy / (static_cast<double>(p) * t.span);
    return t;
  }

  void check_end(const std::vector<std::size_t>& at) const {
    std::string waiting;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] == stages_[i].size()) continue;
      const stage_action a = stages_[i][at[i]];
      waiting += (waiting.empty() ? "stage " : ", stage ") + std::to_string(i) + " to run microbatch " +
                 std::to_string(a.microbatch) + " " + name(a.way);
    }
    if (!waiting.empty())
      sinter::detail::refuse<value_error>({"schedule: stages wait for one another for ever: ", waiting});
  }

  std::vector<actions> stages_;
  std::vector<int> serial_order_;
};

}  // namespace sinter::nn

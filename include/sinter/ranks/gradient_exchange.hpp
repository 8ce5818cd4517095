// sinter/ranks/gradient_exchange.hpp: the steps of several ranks: what they tell each other before a backward pass,
// and the sums of their gradients during it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinter/ranks/gradient_buckets.hpp"
#include "sinter/ranks/row_exchange.hpp"

namespace sinter::nn {

struct distributed_options {
  index_t bucket_bytes = 25 << 20;       ///< gradients that are summed in one call, unless one alone is larger
  index_t first_bucket_bytes = 1 << 20;  ///< of the bucket that is complete first
  bool compress = false;                 ///< float gradients are sent as bfloat16; see distributed
  bool merge_buffers = true;             ///< after each backward; else by merge_buffers()
};

/// What a rank did in its last backward(), in seconds; see plan.
struct step_trace {
  struct bucket {
    index_t bytes;  ///< of its gradients
    double ready;   ///< from the begin of the pass to the last gradient of the bucket
  };
  double forward = 0;    ///< from begin() to backward()
  double backward = 0;   ///< the pass
  double waited = 0;     ///< after the pass, for the sums
  double optimizer = 0;  ///< step of run(); in a loop of your own, set it in a copy
  std::vector<bucket> buckets = {};
  std::vector<index_t> buffers = {};  ///< bytes of each sum of buffers, after the pass
};

/// Sums over the steps of a rank so far.
struct distributed_report {
  index_t steps = 0;
  index_t samples = 0;      ///< of all ranks
  index_t bytes = 0;        ///< of gradients that this rank has put into sums
  communication_time time;  ///< of all calls of its communicators, those of other users included; none of NCCL's

  /// The part of communication that computation hid, 0 to 1.
  double hidden() const { return time.under_way > 0 ? std::max(0., 1 - time.waited / time.under_way) : 1; }
};

namespace detail {

/// What the ranks tell each other before a pass: sums over the ranks. Idle ranks have no samples.
struct step_word {
  index_t samples = 0, idle = 0, finished = 0, stopping = 0;
  static constexpr index_t bytes = 4 * sizeof(std::int64_t);
};

/// Steps over the ranks of `C`, which reaches the host.
template <class C>
class gradient_exchange {
 public:
  gradient_exchange(C& world, const distributed_options& options) : world_(world), options_(options) {
    if (options.bucket_bytes < 1 || options.first_bucket_bytes < 1)
      sinter::detail::refuse<value_error>({"distributed: buckets of ", options.bucket_bytes, " and ",
                                           options.first_bucket_bytes, " bytes; give at least 1"});
  }
  gradient_exchange(const gradient_exchange&) = delete;
  gradient_exchange& operator=(const gradient_exchange&) = delete;
  ~gradient_exchange() {
    for (const auto& leaf : leaves_) {
      try {
        leaf->move_out();
      } catch (...) {  // no memory: the gradient stays in the bucket, which lives as long
      }
    }
  }

  /// A parameter whose device `ranks` reaches. One that was added before is left out. Errors: value_error for a
  /// variable over memory of another one, and for a parameter of another `distributed`.
  template <class V, class Ranks>
  void add(const std::string& name, const V& v, Ranks& ranks, int task) {
    const state_ptr& state = access::state_of(v);
    if (!state || !seen_.add(state.get())) return;
    if (v.numel() > 0 && !memory_.add(access::data(access::value_of(v))))
      sinter::detail::refuse<value_error>(
          {"distributed: '", name, "' of shape ", v.shape(),
           " is a second variable over the memory of another parameter; to tie weights, use one variable twice"});
    if (state->at_home)
      sinter::detail::refuse<value_error>(
          {"distributed: '", name, "' of shape ", v.shape(), " belongs to another distributed that is still there"});
    if constexpr (V::rank == 2) {
      if (state->by_rows) {
        using table = typed_row_leaf<element_of<V>, device_of<V>, Ranks>;
        row_leaves_.push_back(std::make_unique<table>(state, ranks));
        return;
      }
    }
    auto leaf = std::make_unique<typed_leaf<V, Ranks>>(v, ranks, task);
    tasks_ = std::max(tasks_, task);
    bucket_leaf& l = *leaf;
    const auto number = static_cast<std::int32_t>(leaves_.size());
    leaf->listen(
        listener_,
        [this, &l, number] {
          ready_.push_back(number);
          tell(l);
        },
        [this, &l] { tell(l); });
    leaves_.push_back(std::move(leaf));
  }
  /// Once all parameters were added: the first buckets, from the last layer to the first.
  void make_buckets() {
    std::vector<std::int32_t> order;
    for (std::size_t i = leaves_.size(); i-- > 0;) order.push_back(static_cast<std::int32_t>(i));
    make_buckets(order);
  }

  void begin(index_t samples, bool finished) {
    if (samples < 0)
      sinter::detail::refuse<value_error>({"distributed: ", samples, " samples; give the number of this rank's"});
    if (begun_ && agreed().samples > 0)
      sinter::detail::refuse<value_error>({"distributed: begin() was called twice before one backward()"});
    coming_ = world_.all_reduce(tensor<std::int64_t, 1>{samples, samples == 0 ? 1 : 0, finished ? 1 : 0, stop_ ? 1 : 0},
                                reduction::sum, "samples of the step");
    begun_ = true;
    known_ = false;
    own_ = samples;
    began_ = sinter::detail::communication_clock::now();
  }
  bool has_begun() const { return begun_; }
  /// Waits until all ranks have told their numbers of samples.
  const step_word& agreed() {
    if (!known_) {
      const tensor<std::int64_t, 1> sums = coming_.get();
      word_ = {sums(0), sums(1), sums(2), sums(3)};
      const auto counts_ranks = [&](index_t n, bool with_own) { return n >= (with_own ? 1 : 0) && n <= world_.size(); };
      sinter::detail::require_told(
          word_.samples >= own_ && counts_ranks(word_.idle, own_ == 0) && counts_ranks(word_.finished, false) &&
              counts_ranks(word_.stopping, false) && (word_.samples == 0) == (word_.idle == world_.size()),
          world_, -1, "distributed", word_.samples, " samples, and ", word_.idle, " ranks without samples, ",
          word_.finished, " that have finished and ", word_.stopping, " that stop");
      known_ = true;
    }
    return word_;
  }
  /// For a step in which this rank runs no pass.
  void skip() { begun_ = false; }
  void ask_to_stop(bool stop) { stop_ = stop; }

  /// The share of this rank's samples. Errors: value_error where no rank has samples.
  double weight() {
    const step_word& w = agreed();
    if (w.samples == 0)
      sinter::detail::refuse<value_error>({"distributed: backward of a step in which no rank has samples"});
    return static_cast<double>(own_) / static_cast<double>(w.samples);
  }
  index_t samples() const { return own_; }

  /// pass(listener) runs the backward pass with a seed of weight(); null: only what was gathered before is summed. What
  /// a rank without samples gets from its pass is left out.
  template <class Pass>
  void run(const Pass& pass) {
    const double share = weight();
    begun_ = false;
    trace_ = {};
    trace_.forward = sinter::detail::seconds_since(began_);
    next_ = 0;
    ready_.clear();
    for (const auto& bucket : buckets_) {
      bucket->scale(share);
      bucket->missing = bucket->leaves.size();
    }
    for (const auto& table : row_leaves_) table->scale(share);
    for (const auto& leaf : leaves_) leaf->had_gradient = leaf->state->has_kept;
    pass_began_ = sinter::detail::communication_clock::now();
    if constexpr (std::is_null_pointer_v<Pass>) {
      for (const auto& leaf : leaves_) tell(*leaf);
    } else {
      pass(listener_);
    }
    trace_.backward = sinter::detail::seconds_since(pass_began_);
    start_tasks();
    gather_rows();
    const auto end = sinter::detail::communication_clock::now();
    for (const auto& bucket : buckets_)
      if (bucket->started) bucket->finish();
    trace_.waited = sinter::detail::seconds_since(end);
    for (const auto& bucket : buckets_) trace_.buckets.push_back({bucket->gradient_bytes(), bucket->ready});
    ++report_.steps;
    report_.samples += word_.samples;
    if (plans_left_ > 0) plan();
  }
  void drop_gradients() noexcept {
    for (const auto& leaf : leaves_) leaf->state->drop_kept();
    for (const auto& table : row_leaves_) table->state->drop_kept();
    begun_ = false;
  }

  const distributed_report& report() const { return report_; }
  const step_trace& trace() const { return trace_; }
  step_trace& trace() { return trace_; }

 private:
  void tell(bucket_leaf& l) {
    gradient_bucket& b = *l.bucket;
    if (own_ == 0 || !l.state->has_kept) b.zero(l.place);
    if (own_ == 0 && !l.had_gradient) l.state->drop_kept();
    if (--b.missing > 0) return;
    b.ready = sinter::detail::seconds_since(pass_began_);
    // In one order on all ranks. Tasks wait until the ranks know which of them are used.
    while (next_ < common_ && buckets_[next_]->missing == 0) start(next_++);
  }
  void start(std::size_t i) {
    gradient_bucket& b = *buckets_[i];
    b.start(options_.compress, sinter::detail::joined({"gradients ", static_cast<index_t>(i)}));
    report_.bytes += b.bytes();
  }
  /// The buckets of tasks that any rank has used.
  void start_tasks() {
    if (tasks_ == 0) return;
    auto used = zeros<std::int32_t>(extents<1>{{tasks_}});
    for (const auto& leaf : leaves_)
      if (leaf->task > 0 && leaf->state->has_kept) used.data()[leaf->task - 1] = 1;
    used = world_.all_reduce(used, reduction::sum, "tasks").get();
    for (std::size_t i = common_; i < buckets_.size(); ++i)
      if (used.data()[buckets_[i]->leaves[0]->task - 1] > 0) start(i);
  }

  /// Sums the gradients that are held by rows; those of a rank without samples are left out.
  void gather_rows() {
    if (row_leaves_.empty()) return;
    const auto tables = static_cast<index_t>(row_leaves_.size());
    const auto mine = zeros<std::int64_t>(extents<1>{{tables}});
    for (index_t i = 0; own_ > 0 && i < tables; ++i) mine.data()[i] = row_leaves_[static_cast<std::size_t>(i)]->rows();
    const auto all = world_.all_gather(mine, "numbers of rows").get().reshape({world_.size(), tables});
    for (index_t i = 0; i < tables; ++i) {
      row_leaf& table = *row_leaves_[static_cast<std::size_t>(i)];
      const auto counts = all.select(1, i).contiguous();
      for (index_t r = 0; r < counts.numel(); ++r)
        sinter::detail::require_told(
            counts(r) >= 0 && counts(r) <= table.most() && (r != world_.rank() || counts(r) == mine(i)), world_,
            static_cast<int>(r), "distributed", "of ", counts(r), " rows of a gradient");
      report_.bytes += table.gather(counts);
    }
  }

  /// Makes the buckets anew, on all ranks in the order in which gradients were complete on rank 0.
  void plan() {
    std::vector<char> is_ready(leaves_.size(), 0);
    auto order = tensor<std::int32_t, 1>::uninitialized(extents<1>{{static_cast<index_t>(leaves_.size()) + 1}});
    index_t end = 0;
    for (const std::int32_t i : ready_) {
      order.data()[++end] = i;
      is_ready[static_cast<std::size_t>(i)] = 1;
    }
    for (std::size_t i = leaves_.size(); i-- > 0;)
      if (!is_ready[i]) order.data()[++end] = static_cast<std::int32_t>(i);
    order.data()[0] = ready_.empty() ? 0 : 1;
    order = world_.broadcast(order, 0, "order of gradients").get();
    require_order(order);
    --plans_left_;
    if (order.data()[0] == 0) return;  // nothing was ready on rank 0: after the next step
    plans_left_ = 0;
    make_buckets({order.data() + 1, order.data() + order.numel()});
  }
  /// Errors: a communication_error unless order holds 0 or 1, and then the number of each leaf once.
  void require_order(const tensor<std::int32_t, 1>& order) const {
    std::vector<char> is_there(leaves_.size(), 0);
    const auto require_at = [&](index_t i, bool is_right) {
      sinter::detail::require_told(is_right, world_, 0, "distributed", "an order of ",
                                   static_cast<index_t>(leaves_.size()), " gradients with ", order.data()[i],
                                   " in place ", i);
    };
    require_at(0, order.data()[0] == 0 || order.data()[0] == 1);
    for (index_t i = 1; i < order.numel(); ++i) {
      const auto leaf = static_cast<std::uint32_t>(order.data()[i]);
      require_at(i, leaf < is_there.size() && !is_there[leaf]);
      is_there[leaf] = 1;
    }
  }
  /// Makes buckets of the leaves of no task first, in the order in which their gradients will be complete.
  void make_buckets(const std::vector<std::int32_t>& order) {
    std::vector<std::unique_ptr<gradient_bucket>> made;
    struct open_bucket {
      const void* kind;
      bool is_first = true;
      std::size_t bytes = 0;
      std::vector<bucket_leaf*> leaves{};
    };
    const auto close = [&made](open_bucket& b) {
      if (!b.leaves.empty()) made.push_back(b.leaves[0]->make_bucket(std::move(b.leaves)));
      b.leaves.clear();
      b.bytes = 0;
      b.is_first = false;
    };
    for (int task = 0; task <= tasks_; ++task) {
      std::vector<open_bucket> open;
      for (const std::int32_t i : order) {
        bucket_leaf& l = *leaves_[static_cast<std::size_t>(i)];
        if (l.task != task) continue;
        auto at = std::find_if(open.begin(), open.end(), [&](const open_bucket& b) { return b.kind == l.kind(); });
        if (at == open.end()) at = open.insert(at, {l.kind()});
        const index_t limit = at->is_first ? options_.first_bucket_bytes : options_.bucket_bytes;
        if (at->bytes + l.bytes > static_cast<std::size_t>(limit)) close(*at);
        at->leaves.push_back(&l);
        at->bytes += l.bytes;
      }
      for (open_bucket& b : open) close(b);
      if (task == 0) common_ = made.size();
    }
    buckets_ = std::move(made);
  }

  C& world_;
  distributed_options options_;
  gradient_listener listener_;
  std::vector<std::unique_ptr<bucket_leaf>> leaves_;
  std::vector<std::unique_ptr<row_leaf>> row_leaves_;
  std::vector<std::unique_ptr<gradient_bucket>> buckets_;
  sinter::detail::addresses seen_, memory_;
  std::size_t common_ = 0;  ///< buckets of no task; those of tasks come after
  int tasks_ = 0;

  work<tensor<std::int64_t, 1>> coming_;
  step_word word_;
  index_t own_ = 0;
  bool begun_ = false, known_ = true, stop_ = false;
  int plans_left_ = 3;  ///< steps after which buckets may still be put together anew

  std::vector<std::int32_t> ready_;  ///< leaves in the order in which the pass told of them
  std::size_t next_ = 0;             ///< the bucket to be summed next
  sinter::detail::communication_clock::time_point began_{}, pass_began_{};
  distributed_report report_;
  step_trace trace_;
};

}  // namespace detail
}  // namespace sinter::nn

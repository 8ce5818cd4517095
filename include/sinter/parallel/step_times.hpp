// sinter/parallel/step_times.hpp: when the stages of a chain over devices began and ended, forward and backward.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/core/gpu_only.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/report.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"

namespace sinter {

namespace nn {

/// Layers that run one after the other on one device. Seconds.
struct stage_time {
  std::size_t first_layer, last_layer;  ///< the last one is in it
  std::string device;
  double forward = 0, backward = 0;
};
/// What a cut between devices copies: values forward, gradients backward. Seconds.
struct transfer_time {
  std::string from, to;
  index_t bytes;  ///< one way
  double forward = 0, backward = 0;
};
/// Seconds in which a device ran its stages, and the rest of the step.
struct device_time {
  std::string device;
  double busy = 0, idle = 0;
};

/// The times of a step of a chain over devices, from the beginning of forward to the end of backward. What lies between
/// the two is the loss; it counts as work of the last device. Without a backward, of the forward alone.
struct step_times : sinter::detail::report<step_times> {
  std::vector<stage_time> stages;
  std::vector<transfer_time> transfers;  ///< in the order of the cuts
  std::vector<device_time> devices;      ///< in the order in which the chain comes to them
  double loss = 0;
  double step = 0;

  /// A line for each stage, transfer and device.
  std::string text() const {
    std::string lines;
    const auto add = [&lines](const std::string& what, const char* one, double a, const char* two, double b) {
      char row[160];
      std::snprintf(row, sizeof row, "%-34s %-8s %10.3f ms   %-8s %10.3f ms\n", what.c_str(), one, 1e3 * a, two,
                    1e3 * b);
      lines += row;
    };
    for (const stage_time& s : stages)
      add("layers " + std::to_string(s.first_layer) + " to " + std::to_string(s.last_layer) + " on " + s.device,
          "forward", s.forward, "backward", s.backward);
    for (const transfer_time& t : transfers)
      add(t.from + " => " + t.to + ", " + std::to_string(t.bytes) + " bytes", "forward", t.forward, "backward",
          t.backward);
    for (const device_time& d : devices) add(d.device, "busy", d.busy, "idle", d.idle);
    add("step", "all", step, "loss", loss);
    return lines;
  }
};

namespace detail {

/// Seconds of a clock that never goes back.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Waits for the work of a GPU; that of a host device has run.
template <device D>
void wait_for_work() {
  if constexpr (is_cuda_v<D>) synchronize<D>();
}

/// When the stages of one call began and ended; NaN where they have not.
struct step_stamps {
  struct stage {
    static constexpr double never = std::numeric_limits<double>::quiet_NaN();
    double forward_begin = never, forward_end = never, backward_begin = never, backward_end = never;
    index_t bytes_in = 0;
  };
  std::vector<stage> stages;
};

/// Shared by a chain and the graphs of its calls.
struct step_recorder {
  std::atomic<bool> on{false};
  std::mutex mutex;
  std::shared_ptr<step_stamps> last;

  std::shared_ptr<step_stamps> begin(std::size_t stages) {
    auto stamps = std::make_shared<step_stamps>();
    stamps->stages.resize(stages);
    const std::lock_guard lock(mutex);
    last = stamps;
    return stamps;
  }
  std::shared_ptr<step_stamps> latest() {
    const std::lock_guard lock(mutex);
    return last;
  }
};

/// Stands in a graph before all states of the first stage, so that the walk comes to it when their backward has run. It
/// has no memory; its gradient is a mere mark.
class first_stage_mark final : public sinter::detail::grad_state {
  struct stamp final : sinter::detail::tape_entry {
    explicit stamp(std::shared_ptr<step_stamps> s, void (*w)()) : stamps(std::move(s)), wait(w) {
      name = "begin of placed";
    }
    void backward(sinter::detail::grad_state&) override {
      wait();
      stamps->stages.front().backward_end = seconds_now();
    }
    void release() override {}
    const sinter::detail::state_ptr* inputs(int& count) const override {
      count = 0;
      return nullptr;
    }
    std::shared_ptr<step_stamps> stamps;
    void (*wait)();
  };

 public:
  first_stage_mark(std::shared_ptr<step_stamps> stamps, void (*wait)()) {
    producer = new stamp(std::move(stamps), wait);
  }
  void* gradient(bool& add) override {
    add = has_grad;
    has_grad = true;
    return nullptr;
  }
  const index_t* strides() const noexcept override { return nullptr; }
  void drop_gradient() noexcept override { has_grad = false; }
  const void* gradient_to_read() const noexcept override { return nullptr; }
  void share_gradient(const grad_state&) noexcept override {}
  void add_to_kept() override {}
  void keep_gradient() noexcept override {}
  void* kept_gradient() const noexcept override { return nullptr; }
  void drop_kept() noexcept override {}
  sinter::detail::storage_ptr copy_of_kept() const override { return {}; }
  sinter::detail::storage_ptr settle() override { return {}; }
  void restore(const sinter::detail::storage_ptr&) noexcept override {}
};

/// Backward of the copy at a cut: the end of a stage's backward, the copy of the gradient, the beginning of that of the
/// stage before.
template <class T, int R, device From, device To>
struct stamped_copy_backward final : sinter::detail::one_input_backward {
  std::shared_ptr<step_stamps> stamps;
  std::size_t stage;  ///< that the copy leads into

  stamped_copy_backward(sinter::detail::state_ptr from, std::shared_ptr<step_stamps> s, std::size_t into)
      : stamps(std::move(s)), stage(into) {
    name = "cut of placed";
    source = std::move(from);
  }
  void backward(sinter::detail::grad_state& y) override {
    wait_for_work<To>();
    stamps->stages[stage].backward_end = seconds_now();
    const auto& g = static_cast<sinter::detail::typed_state<T, R, To>&>(y).grad;
    if constexpr (std::is_same_v<From, To>) sinter::detail::add_gradient(source, y.retain ? g.clone() : g);
    else sinter::detail::add_gradient(source, g.template to<From>());
    wait_for_work<From>();
    stamps->stages[stage - 1].backward_begin = seconds_now();
  }
};

/// Backward of the end of the chain: it begins that of the last stage, and sends the walk to the mark of the first.
template <class T, int R, device D>
struct stamped_end_backward final : sinter::detail::tape_entry {
  std::shared_ptr<step_stamps> stamps;
  sinter::detail::state_ptr sources[2];

  stamped_end_backward(sinter::detail::state_ptr from, sinter::detail::state_ptr mark, std::shared_ptr<step_stamps> s)
      : stamps(std::move(s)), sources{std::move(from), std::move(mark)} {
    name = "end of placed";
  }
  const sinter::detail::state_ptr* inputs(int& count) const override {
    count = 2;
    return sources;
  }
  void release() override {}
  void backward(sinter::detail::grad_state& y) override {
    wait_for_work<D>();
    stamps->stages.back().backward_begin = seconds_now();
    bool marked = false;
    sources[1]->gradient(marked);
    const auto& g = static_cast<sinter::detail::typed_state<T, R, D>&>(y).grad;
    sinter::detail::add_gradient(sources[0], y.retain ? g.clone() : g);
  }
};

/// y, copied to D where stage number `into` runs, with the times of the copy.
template <device D, class Y>
auto copied_with_times(const Y& y, const std::shared_ptr<step_stamps>& stamps, std::size_t into) {
  using From = device_of<Y>;
  wait_for_work<From>();
  stamps->stages[into - 1].forward_end = seconds_now();
  const auto value = sinter::detail::plain(y).template to<D>();
  wait_for_work<D>();
  auto& stage = stamps->stages[into];
  stage.bytes_in = std::is_same_v<From, D> ? 0 : value.numel() * static_cast<index_t>(sizeof(element_of<Y>));
  stage.forward_begin = seconds_now();
  if constexpr (sinter::detail::is_variable<Y>) {
    static_assert(Y::order < 2, "sinter: chains over devices have no second derivative; use variables of order 1");
    const auto state = sinter::detail::access::state_of(y);
    if (!state || !sinter::detail::recording()) return sinter::detail::unrecorded<1>(value);
    using entry = stamped_copy_backward<element_of<Y>, rank_of<Y>, From, D>;
    return sinter::detail::produced<1>(value, sinter::detail::make_owned<entry>(state, stamps, into));
  } else {
    return value;
  }
}

/// y, whose backward begins that of the last stage.
template <class Y>
Y ended_with_times(const Y& y, const std::shared_ptr<step_stamps>& stamps, const sinter::detail::state_ptr& mark) {
  using D = device_of<Y>;
  wait_for_work<D>();
  stamps->stages.back().forward_end = seconds_now();
  if constexpr (sinter::detail::is_variable<Y>) {
    const auto state = sinter::detail::access::state_of(y);
    if (!state || !sinter::detail::recording()) return y;
    using entry = stamped_end_backward<element_of<Y>, rank_of<Y>, D>;
    return sinter::detail::produced<1>(sinter::detail::plain(y),
                                       sinter::detail::make_owned<entry>(state, mark, stamps));
  } else {
    return y;
  }
}

/// The report of a step, whose stages have these first layers and devices.
inline step_times times_of(const step_stamps& stamps, const std::vector<std::size_t>& first_layers, std::size_t layers,
                           const std::vector<std::string>& devices) {
  step_times t;
  const auto& all = stamps.stages;
  const bool backward = !std::isnan(all.front().backward_end);
  const auto device_named = [&t](const std::string& name) -> device_time& {
    for (device_time& d : t.devices)
      if (d.device == name) return d;
    return t.devices.emplace_back(device_time{name, 0, 0});
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& s = all[i];
    const std::size_t last = (i + 1 < all.size() ? first_layers[i + 1] : layers) - 1;
    stage_time one{first_layers[i], last, devices[i], s.forward_end - s.forward_begin, 0};
    if (backward) one.backward = s.backward_end - s.backward_begin;
    device_named(one.device).busy += one.forward + one.backward;
    t.stages.push_back(one);
    if (i == 0 || devices[i] == devices[i - 1]) continue;
    transfer_time copy{devices[i - 1], devices[i], s.bytes_in, s.forward_begin - all[i - 1].forward_end, 0};
    if (backward) copy.backward = all[i - 1].backward_begin - s.backward_end;
    t.transfers.push_back(copy);
  }
  const auto& end = all.back();
  if (backward) {
    t.loss = end.backward_begin - end.forward_end;
    device_named(devices.back()).busy += t.loss;
  }
  t.step = (backward ? all.front().backward_end : end.forward_end) - all.front().forward_begin;
  for (device_time& d : t.devices) d.idle = std::max(0., t.step - d.busy);
  return t;
}

}  // namespace detail
}  // namespace nn
}  // namespace sinter

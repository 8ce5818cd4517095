// sinter/parallel/segment_times.hpp: runs pieces of a chain on any devices, one after the other or in a pipeline, and
// times them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sinter/parallel/placement_cost.hpp"
#include "sinter/parallel/segments.hpp"

namespace sinter::nn {

/// Seconds: the median of several runs, and the distance of their quartiles.
struct measured_time {
  double median = 0, spread = 0;
};

namespace detail {

inline measured_time median_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&seconds](double part) {
    const double place = part * static_cast<double>(seconds.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, seconds.size() - 1);
    return seconds[below] + (place - static_cast<double>(below)) * (seconds[above] - seconds[below]);
  };
  return {at(0.5), at(0.75) - at(0.25)};
}

/// The seconds of every run.
struct piece_samples {
  std::vector<double> forward, backward, update;
};
struct transfer_samples {
  std::vector<double> value, gradient;
};

class segment_runner {
 public:
  explicit segment_runner(segment_set& set) : set_(set) {}

  microbatch all_samples() const { return {0, set_.samples, 0}; }
  microbatch samples_of(int part, int parts) const {
    const auto range = sinter::detail::samples_of_part(set_.samples, parts, part);
    return {range.begin, range.end, part};
  }

  /// A step on device d: appends what each piece takes.
  void time_pieces(std::size_t d, const microbatch& m, std::vector<piece_samples>& to) {
    auto& pieces = set_.pieces[d];
    to.resize(pieces.size());
    erased_value x, g;
    for (std::size_t s = 0; s < pieces.size(); ++s) timed(to[s].forward, d, [&] { x = pieces[s]->forward(x, m); });
    for (std::size_t s = pieces.size(); s-- > 0;) timed(to[s].backward, d, [&] { g = pieces[s]->backward(g, m); });
    for (std::size_t s = 0; s < pieces.size(); ++s) timed(to[s].update, d, [&] { pieces[s]->update(); });
  }

  /// A step on device e, without updates: appends what it takes to copy each value, and each gradient, to each other
  /// device. to[s][d].
  void time_transfers(std::size_t e, const microbatch& m, std::vector<std::vector<transfer_samples>>& to) {
    auto& pieces = set_.pieces[e];
    to.resize(pieces.size(), std::vector<transfer_samples>(set_.devices.size()));
    const auto copy = [&](const erased_value& v, std::size_t s, std::vector<double> transfer_samples::* where) {
      for (std::size_t d = 0; d < set_.devices.size(); ++d) {
        if (d == e || !v) continue;
        const double begin = seconds_now();
        const erased_value there = set_.move[s][e][d](v);
        set_.devices[d].wait();
        (to[s][d].*where).push_back(seconds_now() - begin);
      }
    };
    erased_value x, g;
    for (std::size_t s = 0; s < pieces.size(); ++s) {
      x = pieces[s]->forward(x, m);
      set_.devices[e].wait();
      if (s + 1 < pieces.size()) copy(x, s + 1, &transfer_samples::value);
    }
    for (std::size_t s = pieces.size(); s-- > 0;) {
      g = pieces[s]->backward(g, m);
      set_.devices[e].wait();
      if (s > 0) copy(g, s, &transfer_samples::gradient);
    }
  }

  /// A step of the chain in one piece.
  double time_whole(std::size_t d) {
    std::vector<double> seconds;
    timed(seconds, d, [&] {
      erased_segment& chain = *set_.whole[d];
      chain.forward(nullptr, all_samples());
      chain.backward(nullptr, all_samples());
      chain.update();
    });
    return seconds[0];
  }

  /// A step with piece s on device[s].
  double time_serial(const std::vector<int>& device) {
    const double begin = seconds_now();
    const microbatch m = all_samples();
    erased_value x, g;
    for (std::size_t s = 0; s < set_.count(); ++s) x = at(s, device).forward(moved(x, s, s - 1, s, device), m);
    for (std::size_t s = set_.count(); s-- > 0;) g = moved(at(s, device).backward(g, m), s, s, s - 1, device);
    for (std::size_t s = 0; s < set_.count(); ++s) at(s, device).update();
    for (const erased_device& d : set_.devices) d.wait();
    return seconds_now() - begin;
  }

  /// The same in microbatches: pieces on one device are a stage, which has a thread. Each runs all forwards, then all
  /// backwards.
  double time_pipelined(const std::vector<int>& device, int microbatches) {
    const double begin = seconds_now();
    std::vector<std::size_t> first{0};
    for (std::size_t s = 1; s < set_.count(); ++s)
      if (device[s] != device[s - 1]) first.push_back(s);
    const std::size_t stages = first.size();
    first.push_back(set_.count());
    std::vector<channel> values(stages), gradients(stages);  // into stage i
    std::vector<std::exception_ptr> failures(stages);
    const auto run = [&](std::size_t i) {
      try {
        for (int j = 0; j < microbatches; ++j) {
          erased_value x;
          if (i > 0) x = moved(values[i].take(), first[i], first[i] - 1, first[i], device);
          for (std::size_t s = first[i]; s < first[i + 1]; ++s)
            x = at(s, device).forward(x, samples_of(j, microbatches));
          wait_on(device[first[i]]);
          if (i + 1 < stages) values[i + 1].put(x);
        }
        for (int j = 0; j < microbatches; ++j) {
          erased_value g;
          if (i + 1 < stages) g = gradients[i].take();
          for (std::size_t s = first[i + 1]; s-- > first[i];)
            g = at(s, device).backward(g, samples_of(j, microbatches));
          g = moved(g, first[i], first[i], first[i] - 1, device);
          wait_on(device[first[i]]);
          if (i > 0) gradients[i - 1].put(g);
        }
      } catch (...) {
        failures[i] = std::current_exception();
        for (channel& c : values) c.close();
        for (channel& c : gradients) c.close();
      }
    };
    {
      std::vector<joined_thread> threads;
      threads.reserve(stages);
      try {
        for (std::size_t i = 1; i < stages; ++i) threads.emplace_back(std::thread(run, i));
      } catch (...) {
        for (channel& c : values) c.close();
        for (channel& c : gradients) c.close();
        throw;
      }
      run(0);
    }
    for (const auto& failure : failures)
      if (failure && !is_closed(failure)) std::rethrow_exception(failure);
    for (std::size_t s = 0; s < set_.count(); ++s) at(s, device).update();
    for (const erased_device& d : set_.devices) d.wait();
    return seconds_now() - begin;
  }

 private:
  struct closed {};
  class channel {
   public:
    void put(erased_value v) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(v));
      changed_.notify_one();
    }
    erased_value take() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (queue_.empty()) throw closed();
      erased_value v = std::move(queue_.front());
      queue_.pop_front();
      return v;
    }
    void close() {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<erased_value> queue_;
    bool closed_ = false;
  };
  struct joined_thread {
    explicit joined_thread(std::thread t) : thread(std::move(t)) {}
    joined_thread(joined_thread&&) = default;
    ~joined_thread() {
      if (thread.joinable()) thread.join();
    }
    std::thread thread;
  };
  static bool is_closed(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const closed&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  template <class F>
  void timed(std::vector<double>& to, std::size_t d, const F& f) {
    const double begin = seconds_now();
    f();
    set_.devices[d].wait();
    to.push_back(seconds_now() - begin);
  }
  void wait_on(int d) const { set_.devices[static_cast<std::size_t>(d)].wait(); }
  erased_segment& at(std::size_t s, const std::vector<int>& device) {
    return *set_.pieces[static_cast<std::size_t>(device[s])][s];
  }
  /// v, which stands before piece s, from the device of piece `from` to that of piece `to`.
  erased_value moved(const erased_value& v, std::size_t s, std::size_t from, std::size_t to,
                     const std::vector<int>& device) const {
    if (s == 0 || !v || device[from] == device[to]) return v;
    return set_.move[s][static_cast<std::size_t>(device[from])][static_cast<std::size_t>(device[to])](v);
  }

  segment_set& set_;
};

}  // namespace detail
}  // namespace sinter::nn

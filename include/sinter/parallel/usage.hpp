// sinter/parallel/usage.hpp: how long devices work, what they copy to each other, and their peak of memory.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "sinter/core/arena.hpp"
#include "sinter/core/gpu_only.hpp"
#include "sinter/core/report.hpp"
#include "sinter/core/usage.hpp"
#include "sinter/cpu/threads.hpp"
#include "sinter/parallel/parts.hpp"

namespace sinter {

// Names in messages.
struct usage_of_no_device;
struct name_the_devices_in_angle_brackets;

/// What one device did.
struct device_usage {
  std::string device;
  double busy = 0;             ///< seconds in which it computed; NaN on a GPU, whose work is not timed
  double idle = 0;             ///< seconds in which it did not
  std::size_t peak_bytes = 0;  ///< most bytes in use at once, with those that were in use before
};
/// The copies from one device to another.
struct transfer_usage {
  std::string from, to;
  std::int64_t copies = 0, bytes = 0;
  double seconds = 0;  ///< in which copies ran, or were put into a GPU's stream; two at once count twice
};

/// What usage_meter::report() returns.
struct usage_report : detail::report<usage_report> {
  double seconds = 0;  ///< that the meter ran
  std::vector<device_usage> devices;
  std::vector<transfer_usage> transfers;  ///< between pairs of devices that copied anything

  /// Of all pairs.
  double transfer_seconds() const {
    double sum = 0;
    for (const transfer_usage& t : transfers) sum += t.seconds;
    return sum;
  }
  std::int64_t transfer_bytes() const {
    std::int64_t sum = 0;
    for (const transfer_usage& t : transfers) sum += t.bytes;
    return sum;
  }

  /// A line for each device and for each pair.
  std::string text() const {
    std::string lines;
    char row[200];
    for (const device_usage& d : devices) {
      std::snprintf(row, sizeof row, "%-8s busy %10.3f ms, idle %10.3f ms, peak %9.3f MB\n", d.device.c_str(),
                    1e3 * d.busy, 1e3 * d.idle, 1e-6 * static_cast<double>(d.peak_bytes));
      lines += row;
    }
    for (const transfer_usage& t : transfers) {
      std::snprintf(row, sizeof row, "%s => %s: %lld copies, %.3f MB, %.3f ms\n", t.from.c_str(), t.to.c_str(),
                    static_cast<long long>(t.copies), 1e-6 * static_cast<double>(t.bytes), 1e3 * t.seconds);
      lines += row;
    }
    return lines;
  }
};

namespace detail {

template <device... D>
constexpr auto find_meter_mistake() {
  if constexpr (sizeof...(D) == 0) return mistake<usage_of_no_device, name_the_devices_in_angle_brackets>{};
  else if constexpr (!all_different<D...>) return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else return fitting<void>{};
}

/// Counters at one moment.
struct usage_mark {
  std::int64_t nanoseconds = 0, bytes = 0, times = 0;
  static usage_mark of(const usage_counter& c) {
    return {c.nanoseconds.load(std::memory_order_relaxed), c.bytes.load(std::memory_order_relaxed),
            c.times.load(std::memory_order_relaxed)};
  }
  usage_mark since(const usage_mark& before) const {
    return {nanoseconds - before.nanoseconds, bytes - before.bytes, times - before.times};
  }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds); }
};

}  // namespace detail

/// Measures, from its beginning or from restart() on, how long devices D compute, what is copied between them and
/// between them and the cpu, and how many bytes they hold at most. It sees all of the program's work, on any thread. A
/// host device computes while a loop of its threads runs; work of two threads at once counts twice. Peaks of memory are
/// those of memory<D>(), which a meter starts anew.
///
///     const usage_meter<numa<0>, numa<1>> meter;
///     step();
///     std::cout << meter.report();
template <device... D>
class usage_meter {
  using mistake_of = decltype(detail::find_meter_mistake<D...>());

 public:
  usage_meter()
    requires(detail::is_fitting<mistake_of>)
  {
    detail::usage_meters().fetch_add(1, std::memory_order_relaxed);
    restart();
  }
  template <class Mistake = mistake_of, class Problem = typename Mistake::problem, class Fix = typename Mistake::fix>
  usage_meter() = delete;
  usage_meter(const usage_meter&) = delete;
  usage_meter& operator=(const usage_meter&) = delete;
  ~usage_meter() { detail::usage_meters().fetch_sub(1, std::memory_order_relaxed); }

  void restart() {
    (wait<D>(), ...);
    (reset_peak_memory<D>(), ...);
    before_ = read();
    begin_ = std::chrono::steady_clock::now();
  }

  /// Waits for the work of GPUs first.
  usage_report report() const {
    (wait<D>(), ...);
    usage_report r;
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const std::vector<detail::usage_mark> now = read();
    std::size_t i = 0;
    const auto next = [&] {
      const detail::usage_mark m = now[i].since(before_[i]);
      ++i;
      return m;
    };
    const auto add_device = [&]<device One>(std::type_identity<One>) {
      const detail::usage_mark m = next();
      device_usage d{device_name<One>(), m.seconds(), 0, memory<One>().peak_bytes};
      if constexpr (is_cuda_v<One>) d.busy = std::numeric_limits<double>::quiet_NaN();
      d.idle = d.busy > r.seconds ? 0 : r.seconds - d.busy;
      r.devices.push_back(d);
    };
    const auto add_pair = [&]<device From, device To>(std::type_identity<From>, std::type_identity<To>) {
      const detail::usage_mark m = next();
      if (m.times > 0) r.transfers.push_back({device_name<From>(), device_name<To>(), m.times, m.bytes, m.seconds()});
    };
    (add_device(std::type_identity<D>{}), ...);
    each_pair(add_pair);
    return r;
  }

 private:
  static constexpr bool has_cpu = (std::is_same_v<D, cpu> || ...);

  template <device One>
  static void wait() {
    if constexpr (is_cuda_v<One>) synchronize<One>();
  }

  template <class F>
  static void each_pair(const F& f) {
    const auto from = [&]<device From>(std::type_identity<From> one) {
      (f(one, std::type_identity<D>{}), ...);
      if constexpr (!has_cpu) {
        f(one, std::type_identity<cpu>{});
        f(std::type_identity<cpu>{}, one);
      }
    };
    (from(std::type_identity<D>{}), ...);
  }

  static std::vector<detail::usage_mark> read() {
    std::vector<detail::usage_mark> marks;
    const auto add_device = [&]<device One>(std::type_identity<One>) {
      if constexpr (is_cuda_v<One>) marks.emplace_back();
      else marks.push_back(detail::usage_mark::of(cpu_impl::pool_of<One>().usage()));
    };
    (add_device(std::type_identity<D>{}), ...);
    each_pair([&]<device From, device To>(std::type_identity<From>, std::type_identity<To>) {
      marks.push_back(detail::usage_mark::of(detail::copies_between<From, To>()));
    });
    return marks;
  }

  std::vector<detail::usage_mark> before_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace sinter

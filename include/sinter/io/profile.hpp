// sinter/io/profile.hpp: where a program spends its time, as a table and as a trace.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sinter/core/work_log.hpp"
#include "sinter/io/json.hpp"
#include "sinter/io/write.hpp"

namespace sinter {

/// What was computed with one name and shape while a profile lived.
struct profile_row {
  std::string name;   ///< "conv2d", "relu(add)": ops with the outermost first; "backward of ..." and "update of ..."
  std::string shape;  ///< of the result
  std::int64_t calls = 0;
  double seconds = 0;        ///< without what other rows account for
  double multiply_adds = 0;  ///< of products and convolutions on host devices
  double bytes = 0;          ///< that products, convolutions and passes of host devices read and write
};

/// While it lives, every kernel and elementwise pass that the program runs is written down, on all threads: forward,
/// backward, and updates of optimizers. Where none lives that costs one load for each. There is one at a time. On a GPU
/// the times are those of launches. After about a million records the others are counted and left out.
///
///     {
///       profile guard("trace.json");  // for chrome://tracing or ui.perfetto.dev
///       train_one_epoch();
///       std::puts(guard.table().c_str());
///     }
class profile {
 public:
  /// Errors: value_error where another profile lives.
  SINTER_COLD profile() { open(); }
  /// Writes the trace to this file when it ends. Errors: those of profile(); io_error where no file can be made there.
  SINTER_COLD explicit profile(std::string path) : path_(std::move(path)) {
    detail::write_file(path_, "{\"traceEvents\":[]}\n");
    open();
  }
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;
  /// What cannot be written, as to a full disk, is told on the standard error.
  SINTER_COLD ~profile() {
    stop();
    try {
      if (!path_.empty()) save(path_);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  }

  /// Ends the writing down; what was written stays.
  void stop();
  /// The rows, those that took the most time first. Stops.
  std::vector<profile_row> rows();
  /// The same as text, the first `most` of them, with the shares of the sum of all rows. Stops.
  std::string table(std::size_t most = 30);
  /// Writes the trace, in the format of Chrome's traces, and stops. Errors: io_error.
  void save(const std::string& path);

 private:
  void open();

  std::string path_;
  bool is_open_ = false;
  std::uint64_t lost_ = 0;
  std::vector<detail::work_record> records_;
};

#if SINTER_DEFINES

namespace detail {

SINTER_COLD inline std::string name_of_work(const work_record& r) {
  std::string name = std::string_view(r.kind) == "forward" ? "" : std::string(r.kind) + " of ";
  std::size_t open = 0;
  for (const char* const part : r.names) {
    if (part == nullptr) break;
    if (open++ > 0) name += "(";
    name += part;
  }
  return name + std::string(open > 0 ? open - 1 : 0, ')');
}
SINTER_COLD inline std::string shape_of_work(const work_record& r) {
  std::string shape = "(";
  for (int d = 0; d < r.rank; ++d) shape += (d > 0 ? "," : "") + std::to_string(r.shape[d]);
  return shape + ")";
}

}  // namespace detail

SINTER_SHARED_COLD void profile::open() {
  if (!detail::work_log::get().open())
    detail::refuse<value_error>({"profile: another one lives; end it before this one begins"});
  is_open_ = true;
}
SINTER_SHARED_COLD void profile::stop() {
  if (!is_open_) return;
  is_open_ = false;
  records_ = detail::work_log::get().close(lost_);
}
SINTER_SHARED_COLD std::vector<profile_row> profile::rows() {
  stop();
  std::vector<profile_row> list;
  std::unordered_map<std::string, std::size_t> place;  // in the list
  for (const detail::work_record& r : records_) {
    const std::string name = detail::name_of_work(r), shape = detail::shape_of_work(r);
    const auto [at, is_new] = place.emplace(name + shape, list.size());
    if (is_new) list.push_back({name, shape});
    profile_row& row = list[at->second];
    ++row.calls;
    row.seconds += 1e-9 * static_cast<double>(r.end - r.begin - r.inside);
    row.multiply_adds += r.multiply_adds;
    row.bytes += r.bytes;
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return std::tie(b.seconds, a.name, a.shape) < std::tie(a.seconds, b.name, b.shape);
  });
  return list;
}
SINTER_SHARED_COLD std::string profile::table(std::size_t most) {
  const std::vector<profile_row> list = rows();
  double sum = 0;
  for (const profile_row& r : list) sum += r.seconds;
  std::string text = "    ms     %   calls   Gmac/s   GB/s  what\n";
  char line[80];
  for (std::size_t i = 0; i < std::min(most, list.size()); ++i) {
    const profile_row& r = list[i];
    const auto rate = [&r](double count) { return r.seconds > 0 ? 1e-9 * count / r.seconds : 0; };
    std::snprintf(line, sizeof line, "%6.2f %5.1f %7lld %8.1f %6.1f  ", 1e3 * r.seconds,
                  sum > 0 ? 100 * r.seconds / sum : 0, static_cast<long long>(r.calls), rate(r.multiply_adds),
                  rate(r.bytes));
    text += line + r.name + " " + r.shape + "\n";
  }
  if (list.size() > most) text += "and " + std::to_string(list.size() - most) + " rows more\n";
  if (lost_ > 0) text += std::to_string(lost_) + " records did not fit\n";
  return text;
}
SINTER_SHARED_COLD void profile::save(const std::string& path) {
  stop();
  std::int64_t start = records_.empty() ? 0 : records_.front().begin;
  for (const detail::work_record& r : records_) start = std::min(start, r.begin);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  char numbers[200];
  const char* separator = "\n";
  for (const detail::work_record& r : records_) {
    std::snprintf(numbers, sizeof numbers,
                  ",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":1,\"tid\":%d,\"args\":{\"multiply_adds\":%.0f,"
                  "\"bytes\":%.0f,\"shape\":",
                  1e-3 * static_cast<double>(r.begin - start), 1e-3 * static_cast<double>(r.end - r.begin), r.thread,
                  r.multiply_adds, r.bytes);
    text += separator;
    text += "{\"name\":" + detail::json_string(detail::name_of_work(r)) + ",\"cat\":" + detail::json_string(r.kind) +
            numbers + detail::json_string(detail::shape_of_work(r)) + "}}";
    separator = ",\n";
  }
  detail::write_file(path, text + "\n]}\n");
}

#endif  // SINTER_DEFINES

}  // namespace sinter

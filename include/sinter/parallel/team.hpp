// sinter/parallel/team.hpp: the parts of one computation at the same time, each on a thread of its own.
#pragma once

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "sinter/cpu/threads.hpp"
#include "sinter/grad/tape.hpp"
#include "sinter/random/distribution.hpp"

namespace sinter::detail {

/// Throws the error again, of the same type, with `where` before its text. Errors that are not the library's stay as
/// they are.
[[noreturn]] SINTER_COLD inline void rethrow_with(const std::exception_ptr& failure, const std::string& where) {
  const auto text = [&where](const error& e) { return where + ": " + e.what(); };
  try {
    std::rethrow_exception(failure);
  } catch (const shape_error& e) {
    throw shape_error(text(e));
  } catch (const index_error& e) {
    throw index_error(text(e));
  } catch (const value_error& e) {
    throw value_error(text(e));
  } catch (const device_error& e) {
    throw device_error(text(e));
  } catch (const io_error& e) {
    throw io_error(text(e));
  } catch (const autograd_error& e) {
    throw autograd_error(text(e));
  } catch (const out_of_memory& e) {
    throw out_of_memory(text(e));
  }
}

/// Threads for the parts of a computation, one of them the caller's. Parts must not wait for one another: where the
/// system grants no threads they run one after the other.
class team {
 public:
  explicit team(std::vector<std::string> names) : names_(std::move(names)), threads_(static_cast<int>(names_.size())) {}

  int parts() const { return static_cast<int>(names_.size()); }
  const std::string& name(int part) const { return names_[static_cast<std::size_t>(part)]; }

  /// Calls f(part) for every part and returns when all have ended. They record, or do not, as the caller does. The
  /// error of the first part that failed is thrown with `doing` and the name of the part before its text; buffers and
  /// generators are then as before in all parts.
  template <class F>
  void run(const char* doing, const F& f) {
    const bool records = recording();
    const sample_numbers numbers = current_samples();
    std::vector<std::exception_ptr> failures(names_.size());
    std::vector<change_list> changes(names_.size());
    threads_.parallel_for(parts(), [&](index_t part) {
      const silence not_recorded(!records);
      const samples_from samples(numbers);
      try {
        undo_scope own(false);
        f(static_cast<int>(part));
        changes[static_cast<std::size_t>(part)].add(own.take());
      } catch (...) {
        failures[static_cast<std::size_t>(part)] = std::current_exception();
      }
    });
    undo_scope::settle(changes, std::any_of(failures.begin(), failures.end(), [](const auto& e) { return bool(e); }));
    for (std::size_t i = 0; i < failures.size(); ++i)
      if (failures[i]) rethrow_with(failures[i], std::string(doing) + " on " + names_[i]);
  }

 private:
  /// no_grad, or nothing.
  struct silence {
    explicit silence(bool on) : count(on ? 1 : 0) { no_grad_guards() += count; }
    ~silence() { no_grad_guards() -= count; }
    silence(const silence&) = delete;
    silence& operator=(const silence&) = delete;
    int count;
  };

  std::vector<std::string> names_;
  cpu_impl::thread_pool threads_;
};

}  // namespace sinter::detail

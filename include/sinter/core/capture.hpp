// sinter/core/capture.hpp: whether this thread records work to be replayed, and what must not be recorded; see
// cuda/graph.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "sinter/core/error.hpp"

namespace sinter::detail {

/// The name of the device whose work this thread records instead of running it; null where it runs.
inline const std::string*& capturing() {
  static thread_local const std::string* device = nullptr;
  return device;
}

/// For what a replay would not repeat, or cannot wait for. Errors: device_error while this thread captures; it says why
/// and what to do.
inline void refuse_capture(const std::string& what, const char* why_and_fix) {
  if (capturing() != nullptr)
    refuse<device_error>({what, " while a step on ", *capturing(), " is captured: ", why_and_fix});
}

/// The random numbers of a step that this thread records: each time that the step runs they are others.
struct captured_draws {
  /// Where the device counts how often the step has run before: 0 in the first run.
  virtual const std::int64_t* run() = 0;

 protected:
  ~captured_draws() = default;
};
inline captured_draws*& capturing_draws() {
  static thread_local captured_draws* draws = nullptr;
  return draws;
}

}  // namespace sinter::detail

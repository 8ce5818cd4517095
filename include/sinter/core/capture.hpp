// sinter/core/capture.hpp: whether this thread records work to be replayed, and what must not be recorded; see cuda/graph.hpp.
#pragma once

#include <string>

#include "sinter/core/error.hpp"

namespace sinter::detail {

/// The name of the device whose work this thread records instead of running it; null where it runs.
inline const std::string*& capturing() {
  static thread_local const std::string* device = nullptr;
  return device;
}

/// For what a replay would not repeat, or cannot wait for. Errors: device_error while this thread captures; it says why and
/// what to do.
inline void refuse_capture(const std::string& what, const char* why_and_fix) {
  if (capturing() != nullptr) throw device_error(what + " while a step on " + *capturing() + " is captured: " + why_and_fix);
}

}  // namespace sinter::detail

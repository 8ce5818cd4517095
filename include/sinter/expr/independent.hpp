// sinter/expr/independent.hpp: passes that do not depend on each other, gathered so that a device may run many at once.
#pragma once

#include <utility>
#include <vector>

#include "sinter/config.hpp"
#include "sinter/core/owned_ptr.hpp"

namespace sinter::detail {

/// While one is alive on a thread, passes that are given to `of` wait for run(), or for its end. Whoever opens one
/// promises that no pass until then reads what another writes.
class independent_passes {
 public:
  /// Waiting passes of one kind.
  struct kind {
    virtual ~kind() = default;
    virtual void run() = 0;
  };

  independent_passes();
  independent_passes(const independent_passes&) = delete;
  independent_passes& operator=(const independent_passes&) = delete;
  ~independent_passes();

  /// The innermost one alive on this thread, or null.
  static independent_passes*& current() {
    static thread_local independent_passes* now = nullptr;
    return now;
  }

  /// The waiting passes of type Kind.
  template <class Kind>
  Kind& of() {
    static const char tag = 0;
    if (kind* const known = find(&tag)) return static_cast<Kind&>(*known);
    return static_cast<Kind&>(add(&tag, make_owned<Kind>()));
  }

  void run();

 private:
  kind* find(const void* tag) const;
  kind& add(const void* tag, owned_ptr<kind> passes);

  std::vector<std::pair<const void*, owned_ptr<kind>>> kinds_;
  independent_passes* before_;
};

#if SINTER_DEFINES

SINTER_SHARED independent_passes::independent_passes() : before_(std::exchange(current(), this)) {}
SINTER_SHARED independent_passes::~independent_passes() {
  current() = before_;
  try {
    run();  // what was begun is done, also where an error ended the rest
  } catch (...) {
  }
}
SINTER_SHARED void independent_passes::run() {
  for (auto& one : std::exchange(kinds_, {})) one.second->run();
}
SINTER_SHARED independent_passes::kind* independent_passes::find(const void* tag) const {
  for (const auto& [known, passes] : kinds_)
    if (known == tag) return passes.get();
  return nullptr;
}
SINTER_SHARED independent_passes::kind& independent_passes::add(const void* tag, owned_ptr<kind> passes) {
  kinds_.emplace_back(tag, std::move(passes));
  return *kinds_.back().second;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

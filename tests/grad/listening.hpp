// tests/grad/listening.hpp: what a gradient_listener was told, beside what the pass has left at its end.
#pragma once

#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../same_bits.hpp"

/// Listens to leaves, and keeps what the gradient of each was when it was told.
class witness {
 public:
  sinter::gradient_listener listener;
  std::vector<std::string> ready, unused;  ///< in the order of the calls
  bool unused_first = true;                ///< all unused leaves were told before the first that was ready

  template <class V>
  void add(const std::string& name, const V& leaf) {
    const auto seen = std::make_shared<typename V::tensor_type>();
    const bool is_new = listener.add(
        leaf,
        [this, name, leaf, seen] {
          ready.push_back(name);
          if (leaf.has_grad()) *seen = leaf.grad().clone();
        },
        [this, name] {
          unused.push_back(name);
          unused_first = unused_first && ready.empty();
        });
    if (!is_new) return;
    checks_.push_back([leaf, seen] {
      if (!leaf.has_grad()) return !seen->defined();
      return seen->defined() && same_bits(*seen, leaf.grad());
    });
    resets_.push_back([seen] { *seen = {}; });
  }
  template <class M>
  void add_all(const M& m) {
    m.for_each_parameter([this](const std::string& name, const auto& p) { this->add(name, p); });
  }

  /// After a pass: each leaf was told once, and what was told is what there is.
  void check() const {
    CHECK(ready.size() + unused.size() == listener.size());
    int differ = 0;
    for (const auto& same : checks_) differ += !same();
    CHECK(differ == 0);
  }
  void forget() {
    ready.clear();
    unused.clear();
    for (const auto& reset : resets_) reset();
  }

 private:
  std::vector<std::function<bool()>> checks_;
  std::vector<std::function<void()>> resets_;
};

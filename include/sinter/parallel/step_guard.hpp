// sinter/parallel/step_guard.hpp: gradients, buffers and generators of modules as they were before a step that may
// fail.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sinter/parallel/replicas.hpp"

namespace sinter::nn::detail {

/// Puts back what a step has changed in the modules that were added, unless settle() was called. Meanwhile their
/// parameters have no gradient, so that those of the step are gathered alone.
class step_guard {
 public:
  step_guard() = default;
  step_guard(const step_guard&) = delete;
  step_guard& operator=(const step_guard&) = delete;
  ~step_guard() {
    for (const auto& one : all_)
      if (one) one->restore();
  }

  template <class M>
  void add(const M& m) {
    sinter::detail::addresses seen;
    const look_at look{*this, seen};
    walk(nullptr, look, m);
    remember<settings_before<M>>(m);
  }

  /// The step has ended well: its gradients are added to those of before.
  void settle() {
    for (const auto& one : all_) one->settle();
    all_.clear();
  }

 private:
  struct member_before {
    virtual ~member_before() = default;
    virtual void settle() {}
    virtual void restore() noexcept = 0;
  };

  template <class T, int R, device D>
  struct gradient_before final : member_before {
    using state = sinter::detail::typed_state<T, R, D>;
    state_ptr owner;
    tensor<T, R, D> kept;
    bool has_kept, at_home;

    explicit gradient_before(const state_ptr& s)
        : owner(s),
          kept(std::exchange(of_owner().kept, {})),
          has_kept(std::exchange(s->has_kept, false)),
          at_home(std::exchange(s->at_home, false)) {}
    state& of_owner() const { return static_cast<state&>(*owner.get()); }
    void settle() override {
      if (!kept.defined()) return;
      state& s = of_owner();
      s.grad = s.kept;
      restore();
      if (!s.grad.defined()) return;
      s.has_grad = true;
      s.add_to_kept();
      s.keep_gradient();
    }
    void restore() noexcept override {
      of_owner().kept = kept;
      owner->has_kept = has_kept;
      owner->at_home = at_home;
    }
  };

  template <device D>
  struct buffer_before final : member_before {
    sinter::detail::storage_ptr memory, copy;
    std::uint64_t version;

    explicit buffer_before(const sinter::detail::storage_ptr& m)
        : memory(m), copy(copy_of<D>(m)), version(m->version.load(std::memory_order_relaxed)) {}
    void restore() noexcept override {
      if (memory->version.load(std::memory_order_relaxed) == version) return;
      try {
        sinter::detail::device_runtime<D>::copy_within(memory->data, copy->data, memory->bytes);
      } catch (...) {  // a GPU that has failed: what is on it is lost
      }
      sinter::detail::note_write(*memory.get());
    }
  };

  template <class M>
  struct settings_before final : member_before {
    const M& now;
    M before;

    explicit settings_before(const M& m) : now(m), before(m) {}
    void restore() noexcept override {
      const copy_settings_of<true> back;
      walk(nullptr, back, now, before);
    }
  };

  struct look_at {
    step_guard& guard;
    sinter::detail::addresses& seen;

    template <class X>
    void operator()(const member_name&, const X& x) const {
      if constexpr (is_variable<X>) {
        const state_ptr& s = access::state_of(x);
        if (s && seen.add(s.get())) guard.remember<gradient_before<element_of<X>, rank_of<X>, device_of<X>>>(s);
      } else if constexpr (is_buffer<X>) {
        if (!x.defined()) return;
        const auto value = x.value();
        const auto& memory = access::storage_of(value);
        if (seen.add(memory.get())) guard.remember<buffer_before<device_of<X>>>(memory);
      }
    }
    template <class M>
    void erased(const member_name* name, const M& m) const {
      m.each_member(name, *this);
    }
  };

  /// Makes its place first: what a Before holds is nowhere else.
  template <class Before, class X>
  void remember(const X& x) {
    all_.emplace_back();
    all_.back() = std::make_unique<Before>(x);
  }

  std::vector<std::unique_ptr<member_before>> all_;
};

}  // namespace sinter::nn::detail

// sinter/parallel/step_guard.hpp: gradients of modules as they were before a step that may fail.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/parallel/replicas.hpp"

namespace sinter::nn::detail {

/// Puts back the gradients of the modules that were added, unless settle() was called. Meanwhile their parameters have
/// none, so that those of the step are gathered alone.
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
  }

  /// The step has ended well: its gradients are added to those of before.
  void settle() {
    for (const auto& one : all_) one->note_change();
    for (const auto& one : all_) one->settle();
    all_.clear();
  }

 private:
  struct member_before {
    virtual ~member_before() = default;
    virtual void note_change() const = 0;
    virtual void settle() = 0;
    virtual void restore() noexcept = 0;
  };

  template <class T, int R, device D>
  struct gradient_before final : member_before {
    using state = sinter::detail::typed_state<T, R, D>;
    state_ptr owner;
    tensor<T, R, D> kept;
    bool has_kept, at_home;

    explicit gradient_before(const state_ptr& s)
        : owner(made_dense(s)),
          kept(std::exchange(of_owner().kept, {})),
          has_kept(std::exchange(s->has_kept, false)),
          at_home(std::exchange(s->at_home, false)) {}
    static const state_ptr& made_dense(const state_ptr& s) {
      s->make_dense();
      return s;
    }
    state& of_owner() const { return static_cast<state&>(*owner.get()); }
    void note_change() const override {
      auto* const scope = sinter::detail::undo_scope::of_gradients();
      if (scope == nullptr) return;
      sinter::detail::storage_ptr before;
      if (has_kept)
        before =
            sinter::detail::copy_of_memory<D>(access::data(kept), static_cast<std::size_t>(kept.numel()) * sizeof(T));
      scope->add(sinter::detail::make_owned<sinter::detail::gradient_change>(*owner, std::move(before)));
    }
    void settle() override {
      if (!kept.defined()) return;
      state& s = of_owner();
      s.make_dense();
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

  struct look_at {
    step_guard& guard;
    sinter::detail::addresses& seen;

    template <class X>
    void operator()(const member_name&, const X& x) const {
      if constexpr (is_variable<X>) {
        const state_ptr& s = access::state_of(x);
        if (s && seen.add(s.get())) guard.remember<gradient_before<element_of<X>, rank_of<X>, device_of<X>>>(s);
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

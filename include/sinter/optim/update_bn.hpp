// sinter/optim/update_bn.hpp: the running moments of batch norms, made anew for averaged parameters.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sinter/nn/module.hpp"

namespace sinter::optim {

namespace detail {

[[noreturn]] SINTER_SHARED_COLD void refuse_no_batches(const char* function);
#if SINTER_DEFINES
[[noreturn]] SINTER_SHARED_COLD void refuse_no_batches(const char* function) {
  sinter::detail::refuse<value_error>(
      {function, ": the loader has no batches; its dataset is empty, or .drop_last leaves none"});
}
#endif  // SINTER_DEFINES

/// Goes through lists of members and makes running moments begin anew, as averages of all batches, until its end.
/// A template, so that only files that call update_bn() make it.
template <class Model>
class fresh_moments {
 public:
  fresh_moments() = default;
  fresh_moments(const fresh_moments&) = delete;
  fresh_moments& operator=(const fresh_moments&) = delete;
  ~fresh_moments() {
    for (const auto& [at, momentum] : before_) *at = momentum;
  }
  std::size_t size() const { return before_.size(); }
  bool was_training() const { return modes_.empty() || modes_[0].second; }
  /// Moments and modes as they were.
  void put_back() {
    for (const auto& [at, on] : modes_) at->training = on;
    for (const auto& undo : moments_) undo();
  }

  template <class M>
  void operator()(sinter::detail::text_piece, M& member) {
    if constexpr (nn::is_module<M>) enter(member);
    else if constexpr (std::is_same_v<M, nn::mode>) modes_.emplace_back(&member, member.training);
  }
  template <class M>
  void enter(M& m) {
    if constexpr (requires { m.each_member(nullptr, *this); }) m.each_member(nullptr, refuse_moments());
    else if constexpr (requires {
                         m.settings.momentum = std::nullopt;
                         m.running_var.value();
                       }) {
      modes_.emplace_back(&m.state, m.state.training);
      if (!m.running_mean.defined()) return;
      before_.emplace_back(&m.settings.momentum, m.settings.momentum);
      m.settings.momentum = std::nullopt;
      moments_.emplace_back([&m, mean = m.running_mean.value().clone(), var = m.running_var.value().clone(),
                             count = m.num_batches_tracked.value().clone()] {
        m.running_mean.value().copy_(mean);
        m.running_var.value().copy_(var);
        m.num_batches_tracked.value().copy_(count);
      });
      m.running_mean.value().zero_();
      m.running_var.value().fill_(1);
      m.num_batches_tracked.value().zero_();
    } else M::visit(*this, m);
  }

 private:
  struct refuse_moments {
    template <class X>
    void operator()(const nn::detail::member_name& name, const X&) const {
      if (std::string_view(name.text()).ends_with("running_mean"))
        throw value_error("update_bn: a batch norm inside an any_module does not show its settings; average buffers");
    }
    template <class M>
    void erased(const nn::detail::member_name* name, const M& m) const {
      m.each_member(name, *this);
    }
  };
  std::vector<std::pair<std::optional<double>*, std::optional<double>>> before_;
  std::vector<std::pair<nn::mode*, bool>> modes_;
  std::vector<std::function<void()>> moments_;
};

}  // namespace detail

/// Makes the running moments of all batch norms anew, as the averages over the batches of a loader, as
/// torch.optim.swa_utils.update_bn: after an equal average of parameters, whose moments nobody has seen. Elements of
/// the loader have `inputs`, or are tensors. The model is in eval() mode afterwards. Errors: value_error for a batch
/// norm inside an any_module and a loader without batches; those of the model. Moments and modes are then as before.
///
///     optim::update_bn(loader, average);
template <class Loader, nn::is_module M>
void update_bn(Loader&& loader, M& model) {
  detail::fresh_moments<M> moments;
  const no_grad guard;
  bool trains = false, any = false;
  try {
    moments.enter(model);
    trains = moments.size() > 0;
    if (trains) {
      model.train();
      for (auto&& batch : loader) {
        any = true;
        if constexpr (expression<decltype(batch)>) static_cast<void>(eval(model(batch)));
        else static_cast<void>(eval(model(batch.inputs)));
      }
      if (!any) detail::refuse_no_batches("update_bn");
    }
  } catch (...) {
    if (trains) model.train(moments.was_training());
    moments.put_back();
    throw;
  }
  model.eval();
}

}  // namespace sinter::optim

// sinter/nn/prepare.hpp: a model whose weights are laid out for its kernels once, for many calls.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/weight_forms.hpp"
#include "sinter/nn/module.hpp"

namespace sinter {

// Names in messages.
struct prepared_model_called_with_a_variable;
struct pass_its_value;

namespace nn {

/// In which numbers a prepared model computes its products and convolutions. full: those of the weights. int8_weights:
/// weights of float are rounded to 8 bits, with a scale for each column. int8: rows of the other operand as well, where
/// the processor multiplies such numbers.
using sinter::detail::weight_precision;

struct prepare_options {
  weight_precision precision = weight_precision::full;
};

/// What prepare made of one weight.
struct prepared_weight {
  std::string name;  ///< as in PyTorch: "fc1.weight"
  std::size_t bytes = 0;
  /// Of rounding: the norm of the difference, relative to the norm, of the column or filter that is farthest off; NaN
  /// where a weight is not finite.
  double error = 0;
};

namespace detail {

template <class X>
inline constexpr bool is_tracked_input = false;
template <expression X>
inline constexpr bool is_tracked_input<X> = is_tracked_v<X>;

template <class M, class... X>
constexpr auto find_prepared_mistake() {
  if constexpr ((is_tracked_input<bare<X>> || ...))
    return sinter::detail::mistake<prepared_model_called_with_a_variable, pass_its_value>{};
  else return inputs_check<M, X...>{};
}
template <class M, class... X>
using prepared_check = decltype(find_prepared_mistake<M, X...>());

}  // namespace detail

/// A model ready for many calls; see prepare. It can be moved, not copied, and is no module.
template <is_module M>
class prepared {
 public:
  using view_type = decltype(infer(std::declval<const M&>()));
  using device_type = device_of<view_type>;

  explicit prepared(const M& model, const prepare_options& options = {})
      : view_(infer(model)), forms_(sinter::detail::make_owned<sinter::detail::weight_forms>(options.precision)) {
    const auto add = [this](const std::string& name, const auto& weights) {
      const auto& kernels = sinter::detail::kept_kernels_on<device_of<sinter::detail::bare<decltype(weights)>>>;
      if constexpr (!std::is_same_v<decltype(kernels), const sinter::detail::no_kernels&>)
        forms_->add(name, sinter::detail::access::storage_of(sinter::detail::plain(weights)), kernels);
    };
    view_.for_each_parameter(add);
  }

  /// What infer(model)(x, more...) gives, to rounding, as a tensor; a module whose forward gives something else than an
  /// expression gives that.
  template <expression X, class... More>
    requires(sinter::detail::is_fitting<detail::prepared_check<view_type, X, More...>>)
  auto operator()(X&& x, More&&... more) const {
    const sinter::detail::weight_forms::scope here(forms_.get());
    auto y = view_(std::forward<X>(x), std::forward<More>(more)...);
    if constexpr (expression<decltype(y)>) return eval(std::move(y));
    else return y;
  }
  template <class X, class... More, class Problem = typename detail::prepared_check<view_type, X, More...>::problem,
            class Fix = typename detail::prepared_check<view_type, X, More...>::fix>
  void operator()(X&&, More&&...) const = delete;
  /// The same of a model whose first input is no tensor, such as nn::lstm of a packed_sequence.
  template <class X, class... More>
    requires(!expression<X> && std::invocable<const view_type&, X, More...>)
  auto operator()(X&& x, More&&... more) const {
    const sinter::detail::weight_forms::scope here(forms_.get());
    return view_(std::forward<X>(x), std::forward<More>(more)...);
  }

  /// f(view), of which all that it evaluates uses the kept weights: for other functions of a model than its forward.
  /// What f returns without evaluating it does not.
  ///
  ///     tensor logits = ready.run([&](const auto& gpt) { return eval(gpt.next(ids, cache)); });
  template <class F>
  decltype(auto) run(F&& f) const {
    const sinter::detail::weight_forms::scope here(forms_.get());
    return std::forward<F>(f)(view_);
  }

  /// infer(model), as this holds it.
  const view_type& view() const { return view_; }

  /// Bytes of memory that the kept weights take, beside the model's own.
  std::size_t bytes() const { return forms_ != nullptr ? forms_->bytes() : 0; }

  /// What is kept of each weight that calls have needed so far.
  std::vector<prepared_weight> weights() const {
    std::vector<prepared_weight> list;
    if (forms_ == nullptr) return list;  // moved from
    forms_->each([&list](const std::string& name, std::size_t bytes, double error) {
      if (list.empty() || list.back().name != name) list.push_back({name, 0, 0});
      list.back().bytes += bytes;
      if (!(error <= list.back().error)) list.back().error = error;  // NaN, too
    });
    return list;
  }

 private:
  view_type view_;
  sinter::detail::owned_ptr<sinter::detail::weight_forms> forms_;
};

/// A view of the model for many calls without gradients. It shares the model's parameters, as infer(model) does, and
/// keeps forms of the weights beside them, as the kernels of the host devices read them: packed, and, for convolutions
/// of 3 x 3 and 5 x 5 where that is faster, transformed. A form is made when a call first needs it. Where its weights
/// were written since, by an optimizer, nn::load or an assignment to value(), the next call makes it anew; writes
/// through data() are noticed after mark_written(model). The precision says in which numbers weights are kept, and
/// multiplied. Results have the same bits for any number of threads. Several threads may call one prepared model at a
/// time. On a GPU nothing is kept. Errors: those of the model; memory_error. docs/inference.md tells more.
///
///     const auto ready = nn::prepare(model);
///     for (const tensor<float, 4>& picture : pictures) show(ready(picture));
///     const auto small = nn::prepare(model, nn::weight_precision::int8_weights);
template <is_module M>
  requires detail::has_plain_twin<M>
[[nodiscard]] prepared<M> prepare(const M& model, const prepare_options& options = {}) {
  return prepared<M>(model, options);
}
template <is_module M>
  requires detail::has_plain_twin<M>
[[nodiscard]] prepared<M> prepare(const M& model, weight_precision precision) {
  return prepared<M>(model, {precision});
}
template <is_module M, class Problem = module_that_is_no_template_of_device_and_kind<M>,
          class Fix = declare_it_template_device_D_class_Kind_or_give_it_a_rebind>
  requires(!detail::has_plain_twin<M>)
void prepare(const M&, const prepare_options& = {}) = delete;

}  // namespace nn
}  // namespace sinter

// sinter/optim/averaged_model.hpp: a model whose parameters are the average of those of another one over its training.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/nn/state.hpp"
#include "sinter/optim/update.hpp"

namespace sinter::optim {

struct averaging_options {
  std::optional<double> decay = std::nullopt;  ///< std::nullopt: all updates count the same
  bool use_buffers = false;  ///< false: buffers are those of the model; true: those of real numbers are averaged, too
};

namespace detail {

/// a + weight (b - a).
template <class T>
struct blend_kernel {
  static constexpr int leaves = 2, outputs = 1;
  using leaf_types = sinter::detail::kernel::type_list<T, T>;
  using output_types = sinter::detail::kernel::type_list<T>;
  compute_type<T> weight;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto a = m.template load<0, T>();
    m.template put<0, T>(a + weight * (m.template load<1, T>() - a));
  }
};

/// A parameter or buffer, whose type is in the functions.
struct averaged_member {
  const void* object;
  const void* data;
  bool is_buffer;
  std::string name;
  std::vector<index_t> shape;
  /// The first of two members of one type becomes first + weight (second - first), or the second where that cannot be.
  void (*blend)(const void* to, const void* from, double weight);
};

template <class X>
void blend_members(const void* to_member, const void* from_member, double weight) {
  using T = element_of<X>;
  using D = device_of<X>;
  const auto to = nn::detail::stored_value(*static_cast<const X*>(to_member));
  auto from = nn::detail::stored_value(*static_cast<const X*>(from_member));
  if constexpr (floating_element<T>) {
    if (weight != 1) {
      if (!(from.shape() == to.shape() && from.strides() == to.strides())) {
        auto same_order = empty_like(to);
        copy(from, same_order);
        from = same_order;
      }
      run_update<D>(blend_kernel<T>{static_cast<compute_type<T>>(weight)}, to.numel(),
                    {access::data(to), access::data(from)}, {access::data(to)});
      return sinter::detail::note_write(*access::storage_of(to).get());
    }
  }
  copy(from, to);
}

struct collect_averaged {
  std::vector<averaged_member>& members;
  template <class X>
  void operator()(const nn::detail::member_name& name, const X& x) const {
    if constexpr (nn::detail::is_stored<X>) {
      if (x.defined()) {
        const auto& value = nn::detail::stored_value(x);
        members.push_back({&x,
                           access::data(value),
                           nn::detail::is_buffer<X>,
                           name.text(),
                           {value.shape().begin(), value.shape().end()},
                           &blend_members<X>});
      }
    }
  }
  template <class M>
  void erased(const nn::detail::member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};
/// `Members` is a parameter so that only files which call it compile its functions.
template <class M, class Members = std::vector<averaged_member>>
Members averaged_members(const M& model) {
  Members members;
  const collect_averaged collect{members};
  nn::detail::walk(nullptr, collect, model);
  return members;
}

/// Errors: value_error unless both lists are of the same types, shape_error unless of the same shapes; nothing is then
/// changed.
template <class Members>
void average(const Members& to, const Members& from, double weight, double weight_of_buffers) {
  bool fits = to.size() == from.size();
  for (std::size_t i = 0; fits && i < to.size(); ++i) fits = to[i].blend == from[i].blend;
  if (!fits) throw value_error("averaged_model: the model is built otherwise than the one that it was made of");
  const auto shown = [](const auto& member) {
    return sinter::detail::shape_piece{member.shape.data(), static_cast<int>(member.shape.size())};
  };
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].shape != from[i].shape)
      sinter::detail::refuse<shape_error>({"averaged_model: ", from[i].name, " has the shape ", shown(from[i]),
                                           " in the model and ", shown(to[i]),
                                           " in the average; pass the model that it was made of"});
  sinter::detail::addresses seen;  // tied weights count once
  for (std::size_t i = 0; i < to.size(); ++i)
    if (seen.add(to[i].data)) to[i].blend(to[i].object, from[i].object, to[i].is_buffer ? weight_of_buffers : weight);
}

SINTER_SHARED void check_decay(const averaging_options& o);

#if SINTER_DEFINES

SINTER_SHARED void check_decay(const averaging_options& o) {
  if (o.decay && !(*o.decay >= 0 && *o.decay <= 1))
    sinter::detail::refuse<value_error>({"averaged_model: decay must be in [0, 1], but is ", *o.decay});
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// A copy of a model whose parameters follow the average of the model's, as torch.optim.swa_utils.AveragedModel: the
/// mean over all calls of update_parameters() (stochastic weight averaging), or with a `decay` the moving average
/// decay average + (1 - decay) parameter. The first call copies. It is a module: call it, infer() it, save and load its
/// state, whose names are PyTorch's, "n_averaged" and "module.fc.weight", also in a run_checkpoint. Buffers are copied
/// from the model, or with `use_buffers` averaged; after an equal average update_bn() makes running moments anew.
/// Averages are kept in the element type of the parameter, so that of half or bfloat16 does not see small changes.
/// Errors: value_error for a decay beyond [0, 1], and for a model that is built otherwise; shape_error for one with
/// other shapes, which changes nothing. P. Izmailov et al.,
/// "Averaging weights leads to wider optima and better generalization", UAI 2018.
///
///     optim::averaged_model average(model, {.decay = 0.999});
///     for (...) { train_one_step(); average.update_parameters(model); }
///     tensor scores = infer(average)(images);
template <nn::is_module M>
class averaged_model : public nn::module<averaged_model<M>> {
 public:
  using device_type = device_of<M>;
  using kind = typename M::kind;
  template <class To, class K>
  using rebind = averaged_model<typename nn::detail::rebound<M, To, K>::type>;

  averaged_model() = default;
  explicit averaged_model(const M& model, const averaging_options& options = {})
      : decay_(options.decay), use_buffers_(options.use_buffers) {
    detail::check_decay(options);
    nn::detail::member_copies copies;
    const nn::detail::copy_members put{copies};
    nn::detail::walk(nullptr, put, model_, model);
    n_averaged_ = zeros<std::int64_t, device_type>(extents<0>{});
  }

  /// Takes the present values of the model, whose parameters may be tracked or plain, into the average.
  void update_parameters(const M& model) {
    const index_t n = n_averaged();
    const double weight = n == 0 ? 1 : decay_ ? 1 - *decay_ : 1 / static_cast<double>(n + 1);
    detail::average(detail::averaged_members(model_), detail::averaged_members(model), weight,
                    use_buffers_ ? weight : 1);
    n_averaged_.value().in_place() += 1;
  }
  /// Calls of update_parameters().
  index_t n_averaged() const { return n_averaged_.value().item(); }
  /// The averaged model itself.
  const M& model() const { return model_; }
  M& model() { return model_; }

  template <class... X>
  static constexpr auto mistake() {
    return nn::detail::find_input_mistake<M, X...>();
  }
  template <class... X>
  auto forward(X&&... x) const {
    return model_(std::forward<X>(x)...);
  }

  template <class F, class... A>
  static void visit(F&& f, A&... a) {
    f("n_averaged", a.n_averaged_...);
    f("module", a.model_...);
    f("decay", a.decay_...);
    f("use_buffers", a.use_buffers_...);
  }

 private:
  nn::buffer<std::int64_t, 0, device_type> n_averaged_;
  M model_;
  std::optional<double> decay_;
  bool use_buffers_ = false;

  template <nn::is_module>
  friend class averaged_model;
};

}  // namespace sinter::optim

// sinter/parallel/split_linear.hpp: a fully connected layer whose outputs are computed by several devices.
#pragma once

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/nn/linear.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/team.hpp"

namespace sinter {

// Names in messages.
template <class>
struct split_linear_of_what_is_no_linear_layer;
struct give_an_nn_linear;
template <class>
struct split_linear_without_devices;
struct name_the_devices_in_angle_brackets;

namespace nn {

namespace detail {

/// What one device is fed with and gives, from forward until its graph is released. Parameters are leaves of its own on
/// the memory of the layer's, so that each device can walk its graph on a thread.
template <class X, class Y, class Layer>
struct split_run {
  using input = X;
  std::optional<X> x;
  std::optional<Y> y;
  std::optional<Layer> layer;
};

template <class T, device D, class Kind, bool Bias>
linear<T, D, Kind, Bias> with_own_leaves(const linear<T, D, Kind, Bias>& from) {
  linear<T, D, Kind, Bias> to;
  to.weight = parameter<T, 2, D, Kind>(stored_value(from.weight));
  if constexpr (Bias) to.bias = parameter<T, 1, D, Kind>(stored_value(from.bias));
  return to;
}

/// The value of x on the device of X; a leaf where x is in a graph.
template <class X, class From>
X leaf_like(const From& x) {
  const auto value = stored_value(x).template to<device_of<X>>();
  if constexpr (is_variable<From>)
    if (!sinter::detail::access::state_of(x)) return sinter::detail::unrecorded<1>(value);
  return X(value);
}

template <class X, class Y, class Layers, class... D>
struct split_runs;
template <class X, class Y, class... Layer, class... D>
struct split_runs<X, Y, sinter::detail::parts<Layer...>, D...> {
  sinter::detail::parts<split_run<sinter::detail::moved_type<X, D>, sinter::detail::moved_type<Y, D>, Layer>...> each;
};

/// The tape entry of a call.
template <class X, class Y, class Layers, class... D>
class split_backward final : public sinter::detail::tape_entry {
  using state_ptr = sinter::detail::state_ptr;
  using access = sinter::detail::access;
  using Runs = split_runs<X, Y, Layers, D...>;
  static constexpr int count = sizeof...(D);
  template <class V>
  using state_of = sinter::detail::typed_state<element_of<V>, rank_of<V>, device_of<V>>;

 public:
  split_backward(std::shared_ptr<sinter::detail::team> team, std::shared_ptr<Runs> runs,
                 const std::vector<index_t>& first, const Layers& layers, state_ptr of_x)
      : team_(std::move(team)), runs_(std::move(runs)), first_(first), layers_(layers) {
    name = "split_linear";
    inputs_.push_back(std::move(of_x));
    sinter::detail::each_part<count>([this](auto part) {
      each_parameter(layers_.template at<part()>(), [this](const auto& p) { inputs_.push_back(access::state_of(p)); });
    });
  }
  const state_ptr* inputs(int& n) const override {
    n = static_cast<int>(inputs_.size());
    return inputs_.data();
  }
  void release() override { runs_.reset(); }

  void backward(sinter::detail::grad_state& y) override {
    const auto& dy = static_cast<state_of<Y>&>(y).grad;
    const bool retain = sinter::detail::graph_is_retained();
    try {
      team_->run("backward of split_linear", [&](int number) {
        sinter::detail::with_part<count>(number, [&](auto part) {
          const auto& run = runs_->each.template at<part()>();
          if (!run.y || !access::state_of(*run.y)) return;
          const auto of_part = dy.slice(-1, first_[part()], first_[part() + 1]);
          run.y->backward(of_part.template to<device_of<decltype(*run.y)>>(), {.retain_graph = retain});
        });
      });
    } catch (...) {
      each_leaf([](const auto& leaf, const state_ptr&) { leaf.zero_grad(); });
      throw;
    }
    each_leaf([](const auto& leaf, const state_ptr& to) {
      if (!leaf.has_grad()) return;
      const auto g = leaf.grad();
      leaf.zero_grad();
      sinter::detail::add_gradient(to, g);
    });
  }

 private:
  template <class Layer, class F>
  static void each_parameter(const Layer& layer, const F& f) {
    if constexpr (is_variable<bare<decltype(layer.weight)>>)
      layer.for_each_parameter([&f](const auto&, const auto& p) { f(p); });
  }
  /// f(leaf of a run, state that its gradient is for), device after device, with x's gradient moved home.
  template <class F>
  void each_leaf(const F& f) {
    const std::size_t parameters = (inputs_.size() - 1) / sizeof...(D);
    sinter::detail::each_part<count>([&](auto part) {
      const auto& run = runs_->each.template at<part()>();
      if (!run.y) return;
      std::size_t next = 1 + part() * parameters;
      each_parameter(*run.layer, [&](const auto& leaf) { f(leaf, inputs_[next++]); });
      if constexpr (is_variable<X>)
        if (inputs_[0]) f(at_home<std::remove_cvref_t<decltype(*run.x)>>{*run.x}, inputs_[0]);
    });
  }
  /// A leaf on another device whose gradient is asked for on x's.
  template <class Leaf>
  struct at_home {
    const Leaf& leaf;
    void zero_grad() const { leaf.zero_grad(); }
    bool has_grad() const { return leaf.has_grad(); }
    auto grad() const { return leaf.grad().template to<device_of<X>>(); }
  };

  std::shared_ptr<sinter::detail::team> team_;
  std::shared_ptr<Runs> runs_;
  std::vector<index_t> first_;
  Layers layers_;
  std::vector<state_ptr> inputs_;  ///< of x, and of each part's parameters
};

template <class M>
inline constexpr bool is_linear_layer = false;
template <class T, class H, class Kind, bool Bias>
inline constexpr bool is_linear_layer<linear<T, H, Kind, Bias>> = true;

template <class M, class... D>
constexpr auto find_split_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_linear_layer<M>) return mistake<split_linear_of_what_is_no_linear_layer<M>, give_an_nn_linear>{};
  else if constexpr (sizeof...(D) == 0)
    return mistake<split_linear_without_devices<M>, name_the_devices_in_angle_brackets>{};
  else if constexpr (!sinter::detail::all_different<D...>)
    return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else return sinter::detail::fitting<void>{};
}
template <class M, class... D>
using split_mistake = decltype(find_split_mistake<bare<M>, D...>());

}  // namespace detail

/// What split_linear() returns; see there.
template <floating_element T, device H, class Kind, bool Bias, device... D>
class split_linear_over : public module<split_linear_over<T, H, Kind, Bias, D...>> {
  using parts = sinter::detail::parts<linear<T, D, Kind, Bias>...>;
  using whole_layer = linear<T, H, Kind, Bias>;
  static constexpr int count = sizeof...(D);

 public:
  using device_type = H;
  using output_device = H;
  using kind = Kind;
  static constexpr bool runs_copies = true;  ///< of its members, in their stead
  template <class K>
  using as = split_linear_over<T, H, K, Bias, D...>;

  split_linear_over() : team_(std::make_shared<sinter::detail::team>(std::vector{device_name<D>()...})) {}
  split_linear_over(const whole_layer& layer, const std::vector<index_t>& columns) : split_linear_over() {
    check_columns(layer, columns);
    index_t begin = 0;
    sinter::detail::each_part<count>([&](auto part) {
      auto& to = parts_.template at<part()>();
      using D0 = device_of<std::remove_cvref_t<decltype(to)>>;
      const index_t end = begin + columns[part()];
      const auto copied = [&](const auto& p) {
        return detail::stored_value(p).slice(0, begin, end).clone().template to<D0>();
      };
      to.weight = copied(layer.weight);
      if constexpr (Bias) to.bias = copied(layer.bias);
      begin = end;
    });
  }

  /// The layer of part I, on device number I of D.
  template <std::size_t I>
  const auto& part() const {
    return parts_.template at<I>();
  }
  template <std::size_t I>
  auto& part() {
    return parts_.template at<I>();
  }
  /// A layer on the home device with copies of all parameters, as to save them under PyTorch's names.
  whole_layer joined() const {
    const std::vector<index_t> first = first_columns();
    const index_t inputs = parts_.template at<0>().weight.extent(1);
    whole_layer all;
    all.weight = zeros<T, H>(extents<2>{{first.back(), inputs}});
    if constexpr (Bias) all.bias = zeros<T, H>(extents<1>{{first.back()}});
    sinter::detail::each_part<count>([&](auto part) {
      const auto& from = parts_.template at<part()>();
      const auto put = [&](const auto& to, const auto& p) {
        detail::stored_value(to).slice(0, first[part()], first[part() + 1]).in_place() =
            detail::stored_value(p).template to<H>();
      };
      put(all.weight, from.weight);
      if constexpr (Bias) put(all.bias, from.bias);
    });
    return all;
  }

  /// Errors: shape_error as linear, with the name of the device.
  template <class E>
  auto forward(const E& input) const {
    using X = sinter::detail::evaluated<E>;
    using Y = sinter::detail::evaluated<decltype(std::declval<const whole_layer&>()(std::declval<const X&>()))>;
    const X x = sinter::detail::eval_to_read(input);
    const auto runs = std::make_shared<detail::split_runs<X, Y, parts, D...>>();
    const std::vector<index_t> first = first_columns();
    team_->run("split_linear", [&](int number) {
      sinter::detail::with_part<count>(number, [&](auto part) {
        if (first[part()] == first[part() + 1]) return;
        auto& run = runs->each.template at<part()>();
        run.x.emplace(detail::leaf_like<typename std::remove_cvref_t<decltype(run)>::input>(x));
        run.layer.emplace(detail::with_own_leaves(parts_.template at<part()>()));
        run.y.emplace(eval((*run.layer)(*run.x)));
      });
    });
    const auto value = joined_columns<Y>(*runs, x.shape(), first);
    if constexpr (detail::is_variable<Y>) {
      if (!sinter::detail::recording()) return Y(sinter::detail::unrecorded<1>(value));
      sinter::detail::state_ptr of_x;
      if constexpr (detail::is_variable<X>) of_x = sinter::detail::access::state_of(x);
      using entry = detail::split_backward<X, Y, parts, D...>;
      return Y(sinter::detail::produced<1>(value, sinter::detail::make_owned<entry>(team_, runs, first, parts_, of_x)));
    } else {
      return value;
    }
  }

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    sinter::detail::each_part<count>([&](auto part) { f(std::to_string(part()), s.template part<part()>()...); });
  }

 private:
  static void check_columns(const whole_layer& layer, const std::vector<index_t>& columns) {
    if (!layer.weight.defined()) throw value_error("split_linear: the layer is empty");
    bool fits = columns.size() == sizeof...(D);
    for (const index_t c : columns) fits = fits && c >= 0;
    std::string text;
    for (const index_t c : columns) text += (text.empty() ? "" : ", ") + std::to_string(c);
    if (!fits || std::accumulate(columns.begin(), columns.end(), index_t{0}) != layer.weight.extent(0))
      sinter::detail::refuse<value_error>({"split_linear: columns ", text, " on ", count, " devices, of a layer with ",
                                           layer.weight.extent(0), " outputs; name as many on each as add up to that"});
  }
  /// The number of the first column of each part, and that of all.
  std::vector<index_t> first_columns() const {
    std::vector<index_t> first{0};
    sinter::detail::each_part<count>([&](auto part) {
      const auto& weight = parts_.template at<part()>().weight;
      first.push_back(first.back() + (weight.defined() ? weight.extent(0) : 0));
    });
    return first;
  }
  template <class Y, class Runs, int R>
  static tensor<T, R, H> joined_columns(const Runs& runs, extents<R> shape, const std::vector<index_t>& first) {
    shape[R - 1] = first.back();
    const auto all = tensor<T, R, H>::uninitialized(shape);
    sinter::detail::each_part<count>([&](auto part) {
      const auto& run = runs.each.template at<part()>();
      if (!run.y) return;
      all.slice(-1, first[part()], first[part() + 1]).in_place() = detail::stored_value(*run.y).template to<H>();
    });
    return all;
  }

  parts parts_;
  std::shared_ptr<sinter::detail::team> team_;
};

/// A linear layer whose output columns are cut over devices D: part i holds the rows of the weight, and the part of the
/// bias, of its columns. Input and output are on the layer's device; each device gets a copy of the input, the parts
/// run at the same time, and their columns are joined. Backward does the same: each device makes the gradients of its
/// parameters and its share of the input's, and the shares are added in the order of the devices.
///
/// Parameters are copies of the layer's. They live on their devices, with their gradients, and optimizers update them
/// there: a layer that no device could hold alone. They are named "0.weight", "0.bias", "1.weight", ...; joined() puts
/// them together. Columns are shared out evenly, or as `columns` says. Errors: value_error for columns that do not add
/// up to the layer's outputs.
///
///     const auto wide = nn::split_linear<cuda<0>, cuda<1>>(nn::linear(4096, 4096, gen));
///     const auto uneven = nn::split_linear<cuda<0>, cpu>(layer, {4000, 96});
template <device... D, class M>
  requires(sinter::detail::is_fitting<detail::split_mistake<M, D...>>)
auto split_linear(const M& layer, const std::vector<index_t>& columns) {
  return [&]<class T, class H, class Kind, bool Bias>(const linear<T, H, Kind, Bias>& l) {
    return split_linear_over<T, H, Kind, Bias, D...>(l, columns);
  }(layer);
}
template <device... D, class M>
  requires(sinter::detail::is_fitting<detail::split_mistake<M, D...>>)
auto split_linear(const M& layer) {
  constexpr index_t parts = sizeof...(D);
  const index_t all = layer.weight.defined() ? layer.weight.extent(0) : 0;
  std::vector<index_t> columns;
  for (index_t i = 0; i < parts; ++i)
    columns.push_back(sinter::detail::begin_of_part(all, parts, i + 1) - sinter::detail::begin_of_part(all, parts, i));
  return split_linear<D...>(layer, columns);
}
template <device... D, class M, class Problem = typename detail::split_mistake<M, D...>::problem,
          class Fix = typename detail::split_mistake<M, D...>::fix>
void split_linear(const M&, const std::vector<index_t>& = {}) = delete;

}  // namespace nn
}  // namespace sinter

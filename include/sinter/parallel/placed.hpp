// sinter/parallel/placed.hpp: a chain of layers over devices, cut where the type says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sinter/nn/sequential.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/step_times.hpp"

namespace sinter {

// Names in messages.
template <class>
struct placed_of_what_is_no_chain;
struct give_an_nn_sequential;
template <class>
struct placed_without_cuts;
struct name_the_devices_as_in_nn_cut_0_cpu;
template <class>
struct placed_by_what_is_no_cut;
template <class>
struct first_cut_that_is_not_at_layer_0;
struct begin_with_nn_cut_0;
template <class...>
struct cuts_out_of_order;
struct sort_the_cuts_by_their_layer;
template <class, int>
struct cut_beyond_a_chain_of_layers;
struct cut_before_a_layer_that_is_there;
template <class, class>
struct layer_that_cannot_move_to;

namespace nn {

/// Layers of a chain from number First on are on D, as far as the next cut; see placed().
template <std::size_t First, device D>
struct cut {
  static constexpr std::size_t first_layer = First;
  using device_type = D;
};

namespace detail {

template <class X>
inline constexpr bool is_cut = false;
template <std::size_t First, class D>
inline constexpr bool is_cut<cut<First, D>> = true;

/// The stages of a chain.
template <class... Cuts>
struct cut_list {
  static constexpr std::size_t count = sizeof...(Cuts);
  static constexpr std::size_t first[sizeof...(Cuts)] = {Cuts::first_layer...};
  static constexpr std::size_t stage_of(std::size_t layer) {
    std::size_t stage = 0;
    while (stage + 1 < count && first[stage + 1] <= layer) ++stage;
    return stage;
  }
  template <std::size_t Stage>
  using device_of_stage = sinter::detail::type_of_part<Stage, typename Cuts::device_type...>;
  template <std::size_t Layer>
  using device_of_layer = device_of_stage<stage_of(Layer)>;

  static constexpr bool ascend() {
    for (std::size_t i = 1; i < count; ++i)
      if (first[i - 1] >= first[i]) return false;
    return true;
  }
  static std::vector<std::string> device_names() { return {device_name<typename Cuts::device_type>()...}; }
  // For chain_output.
  using input = device_of_stage<0>;
  using output = device_of_stage<count - 1>;
  static constexpr bool one_device = (std::is_same_v<typename Cuts::device_type, input> && ...);
};

/// A value on its way through the layers.
template <class Cuts, class V>
struct placed_value {
  V value;
  const std::shared_ptr<step_stamps>& stamps;  ///< null where times are not recorded
};

template <class Cuts, class V, std::size_t I, class M>
auto operator|(placed_value<Cuts, V>&& v, const slot<I, M>& layer) {
  constexpr std::size_t stage = Cuts::stage_of(I);
  const auto& stamps = v.stamps;
  const auto next = [&stamps](auto y) { return placed_value<Cuts, decltype(y)>{std::move(y), stamps}; };
  if constexpr (stage > 0 && Cuts::first[stage] == I) {
    using D = typename Cuts::template device_of_stage<stage>;
    const auto here = sinter::eval(std::move(v.value));
    return next(layer.module(stamps ? copied_with_times<D>(here, stamps, stage) : here.template to<D>()));
  } else {
    return next(layer.module(std::move(v.value)));
  }
}

/// Throws for a parameter or buffer of a chain that stands in layers which go to two places: it would become two.
/// place_of(layer) names the place.
template <class M, class F>
void refuse_torn_ties(const char* who, const M& chain, const F& place_of, const char* what_to_do) {
  struct entry {
    const void* data;
    std::string name, place;
  };
  std::vector<entry> seen;
  const auto look = [&](const std::string& name, const auto& x) {
    if (!x.defined() || x.numel() == 0) return;
    const entry now{sinter::detail::access::data(stored_value(x)), name, place_of(std::stoul(name))};
    for (const entry& e : seen)
      if (e.data == now.data && e.place != now.place)
        sinter::detail::refuse<value_error>({who, ": '", e.name, "' ", e.place, " and '", now.name, "' ", now.place,
                                             " are one parameter or buffer; ", what_to_do});
    seen.push_back(now);
  };
  chain.for_each_parameter(look);
  chain.for_each_buffer(look);
}

template <class M>
inline constexpr int layers_of = -1;
template <class... M>
inline constexpr int layers_of<sequential<M...>> = sizeof...(M);

}  // namespace detail

/// What placed() returns; see there. M: the layers, each on its device.
template <class Cuts, class... M>
class placed_over : public module<placed_over<Cuts, M...>>, public detail::chain_output<Cuts> {
  using slot_list = detail::slot_pack<std::index_sequence_for<M...>, M...>;

 public:
  using device_type = typename Cuts::input;
  using kind = typename sequential<M...>::kind;
  /// The chain on one device again.
  template <class D, class K>
  using rebind = sequential<typename detail::rebound<M, D, K>::type...>;
  template <class K>
  using as = placed_over<Cuts, typename detail::kind_changed<M, K>::type...>;

  placed_over() : recorder_(std::make_shared<detail::step_recorder>()) {}

  template <class X>
  auto forward(const X& x) const {
    if (!recorder_->on.load(std::memory_order_relaxed)) {
      const std::shared_ptr<detail::step_stamps> none;
      return sinter::eval(layers_.through(detail::placed_value<Cuts, X>{x, none}).value);
    }
    const auto stamps = recorder_->begin(Cuts::count);
    detail::wait_for_work<device_type>();
    stamps->stages[0].forward_begin = detail::seconds_now();
    const sinter::detail::state_ptr mark(new detail::first_stage_mark(stamps, &detail::wait_for_work<device_type>));
    const auto y = sinter::eval(layers_.through(detail::placed_value<Cuts, X>{x, stamps}).value);
    return detail::ended_with_times(y, stamps, mark);
  }

  /// Records from now on when stages and transfers begin and end, or stops that. Every call waits at its cuts for GPUs,
  /// so it is slower there.
  void record_times(bool on = true) const { recorder_->on.store(on, std::memory_order_relaxed); }
  /// The times of the last call, and of its backward once that has run. Errors: value_error where none was recorded.
  step_times times() const {
    const auto stamps = recorder_->latest();
    if (!stamps || std::isnan(stamps->stages.back().forward_end))
      throw value_error("placed: no times; call record_times() before the step");
    const std::vector<std::size_t> first(Cuts::first, Cuts::first + Cuts::count);
    return detail::times_of(*stamps, first, size(), Cuts::device_names());
  }

  /// Layer number N.
  template <std::size_t N>
  auto& get() {
    return layer<N>(layers_);
  }
  template <std::size_t N>
  const auto& get() const {
    return layer<N>(layers_);
  }
  static constexpr std::size_t size() { return sizeof...(M); }

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    slot_list::visit_all(f, s...);
  }

 private:
  template <std::size_t N, class L>
  static L& layer(detail::slot<N, L>& s) {
    return s.module;
  }
  template <std::size_t N, class L>
  static const L& layer(const detail::slot<N, L>& s) {
    return s.module;
  }

  slot_list layers_;
  std::shared_ptr<detail::step_recorder> recorder_;  ///< also of copies
};

namespace detail {

template <class Cuts, class Index, class... M>
struct placed_type;
template <class Cuts, std::size_t... I, class... M>
struct placed_type<Cuts, std::index_sequence<I...>, M...> {
  static constexpr std::size_t count = sizeof...(M);
  static constexpr int stuck() {  ///< the first layer that cannot move, or -1
    const bool moves[] = {has_twin_on<M, typename Cuts::template device_of_layer<I>>...};
    for (std::size_t i = 0; i < count; ++i)
      if (!moves[i]) return static_cast<int>(i);
    return -1;
  }
  template <std::size_t N>
  using stuck_layer =
      layer_that_cannot_move_to<sinter::detail::type_of_part<N, M...>, typename Cuts::template device_of_layer<N>>;
  static auto of_moving() {
    return type_identity<placed_over<
        Cuts, typename M::template rebind<typename Cuts::template device_of_layer<I>, typename M::kind>...>>{};
  }
  template <class X>
  struct type_identity {
    using type = X;
  };
};

template <class Cuts, class... M>
constexpr auto find_moving_mistake(const sequential<M...>*) {
  using sinter::detail::mistake;
  using placement = placed_type<Cuts, std::index_sequence_for<M...>, M...>;
  if constexpr (constexpr int stuck = placement::stuck(); stuck >= 0)
    return mistake<typename placement::template stuck_layer<std::size_t{stuck}>,
                   declare_it_template_device_D_class_Kind_or_give_it_a_rebind>{};
  else return sinter::detail::fitting<void>{};
}

/// The first of Cuts that is none.
template <class... Cuts>
struct no_cut_in;
template <class First, class... Rest>
struct no_cut_in<First, Rest...> : std::conditional_t<is_cut<First>, no_cut_in<Rest...>, first_of<First>> {};
template <>
struct no_cut_in<> {
  using type = void;
};

template <class M, class... Cuts>
constexpr auto find_placement_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>) return sinter::detail::not_operands{};
  else if constexpr (layers_of<M> < 0) return mistake<placed_of_what_is_no_chain<M>, give_an_nn_sequential>{};
  else if constexpr (sizeof...(Cuts) == 0)
    return mistake<placed_without_cuts<M>, name_the_devices_as_in_nn_cut_0_cpu>{};
  else if constexpr (!(is_cut<Cuts> && ...))
    return mistake<placed_by_what_is_no_cut<typename no_cut_in<Cuts...>::type>, name_the_devices_as_in_nn_cut_0_cpu>{};
  else if constexpr (cut_list<Cuts...>::first[0] != 0)
    return mistake<first_cut_that_is_not_at_layer_0<typename first_of<Cuts...>::type>, begin_with_nn_cut_0>{};
  else if constexpr (!cut_list<Cuts...>::ascend())
    return mistake<cuts_out_of_order<Cuts...>, sort_the_cuts_by_their_layer>{};
  else if constexpr (static_cast<int>(cut_list<Cuts...>::first[sizeof...(Cuts) - 1]) >= layers_of<M>)
    return mistake<
        cut_beyond_a_chain_of_layers<sinter::detail::type_of_part<sizeof...(Cuts) - 1, Cuts...>, layers_of<M>>,
        cut_before_a_layer_that_is_there>{};
  else return find_moving_mistake<cut_list<Cuts...>>(static_cast<const M*>(nullptr));
}
template <class M, class... Cuts>
using placement_mistake = decltype(find_placement_mistake<bare<M>, Cuts...>());

}  // namespace detail

/// A chain over devices: a module with copies of the layers of a `sequential`, from number 0 up to the second cut on
/// the device of the first, and so on. The input is on the first device, the output on the last one; at a cut the value
/// is copied, in backward its gradient. Devices may come back: A, B, A.
///
/// Parameters and buffers are those of the chain, under its names ("0.weight"), so that states load, and tied ones stay
/// tied. A call gives a value, not an expression. `to<D>()` gives a `sequential` on D again. After record_times(),
/// times() tells what stages and transfers of the last step took, and how long devices were idle. Errors: value_error
/// where a parameter is tied between layers on two devices.
///
///     auto split = nn::placed<nn::cut<0, cuda<0>>, nn::cut<8, cpu>>(chain);  // layers 0 to 7, and from 8 on
///     optim::sgd optimizer(split, {.lr = 0.1});
///     variable loss = cross_entropy(split(images.to<cuda<0>>()), labels);
template <class... Cuts, class M>
  requires(sinter::detail::is_fitting<detail::placement_mistake<M, Cuts...>>)
auto placed(const M& chain) {
  return [&]<class... L>(const sequential<L...>& from) {
    using list = detail::cut_list<Cuts...>;
    typename decltype(detail::placed_type<list, std::index_sequence_for<L...>, L...>::of_moving())::type copy;
    const std::vector<std::string> devices = list::device_names();
    detail::refuse_torn_ties(
        "placed", from, [&](std::size_t layer) { return "on " + devices[list::stage_of(layer)]; },
        "cut so that their layers are on one device, or give the layers parameters of their own");
    detail::member_copies copies;
    const detail::copy_members put{copies};
    detail::walk(nullptr, put, copy, from);
    return copy;
  }(chain);
}
template <class... Cuts, class M, class Problem = typename detail::placement_mistake<M, Cuts...>::problem,
          class Fix = typename detail::placement_mistake<M, Cuts...>::fix>
void placed(const M&) = delete;

}  // namespace nn
}  // namespace sinter

// sinter/parallel/tiles.hpp: a module whose images are cut into tiles, each on a device of its own.
#pragma once

#include "sinter/core/owned_ptr.hpp"
#include "sinter/parallel/data_parallel.hpp"
#include "sinter/parallel/tile_norm.hpp"

namespace sinter {

// Names in messages.
template <class>
struct module_has_no_tile_rule;
struct put_it_behind_the_tiles_or_specialise_nn_tile_rule;
template <class>
struct grid_that_is_no_tiles;
struct name_rows_columns_and_devices_as_in_tiles_1_2_numa_0_numa_1;

namespace nn {

namespace detail {

/// The replicas of an M on devices D, and the threads of their tiles.
template <class M, class... D>
class tile_set : public replica_set<M, D...> {
 public:
  std::shared_ptr<tile_team<int{sizeof...(D)}>> team;

  explicit tile_set(const M& original)
      : replica_set<M, D...>(original),
        team(std::make_shared<tile_team<int{sizeof...(D)}>>(std::vector<std::string>{device_name<D>()...})) {}
  /// Hands over to the original what tile 0 has changed of buffers and generators.
  void merge_first(const M& original) {
    sample_range first[sizeof...(D)];
    first[0] = {0, 1, true};
    this->merge(original, first, 1);
  }
};

/// Runs modules I to the last of chains, which are built alike, over the tiles of an image.
template <std::size_t I, class Call, class Chains, class In>
auto run_chain(Call& call, const Chains& chains, const In& in) {
  using Chain = first_chain<Chains>;
  if constexpr (I == std::tuple_size_v<Chain>) {
    return in;
  } else {
    using Head = bare<std::tuple_element_t<I, Chain>>;
    constexpr std::size_t end = end_of_statement<Chain, I + 1>();
    if constexpr (is_tile_branches<Head>) {
      const auto branch = [&](auto get) {
        return [&]<std::size_t... P>(std::index_sequence<P...>) {
          return sinter::detail::parts<bare<decltype(get(std::get<I>(chains.template at<P>())))>...>(
              get(std::get<I>(chains.template at<P>()))...);
        }(std::make_index_sequence<std::size_t{In::count}>{});
      };
      const auto a = run_chain<0>(call, branch([](const auto& sum) { return sum.first; }), in);
      const auto b = run_chain<0>(call, branch([](const auto& sum) { return sum.second; }), in);
      return run_chain<end>(call, chains, run_sum<I + 1, end>(call, chains, a, b));
    } else if constexpr (merges_moments<Head>) {
      return run_chain<end>(call, chains, run_norm<I, end>(call, chains, in));
    } else {
      return run_chain<end>(call, chains, run_window<I, end>(call, chains, in));
    }
  }
}

/// The tape entry of a call: its statements, which it walks back over all tiles at the same time.
template <class Set, class Call, class In, class Out, device H>
struct tiled_backward final : sinter::detail::tape_entry {
  using T = typename Out::image::value_type;

  tiled_backward(std::shared_ptr<Set> set, Call made, In in, Out out, state_ptr x)
      : set_(std::move(set)),
        call_(std::move(made)),
        from_(std::move(in)),
        to_(std::move(out)),
        inputs_(set_->states()) {
    name = "tile_parallel";
    inputs_.push_back(std::move(x));
  }
  const state_ptr* inputs(int& count) const override {
    count = static_cast<int>(inputs_.size());
    return inputs_.data();
  }
  void release() override {
    call_.stages.clear();
    from_.data.reset();
    to_.data.reset();
  }

  void backward(sinter::detail::grad_state& y) override {
    const auto dy = static_cast<sinter::detail::typed_state<T, 4, H>&>(y).grad;
    const bool retain = sinter::detail::graph_is_retained();
    const auto turn = set_->take_turn();
    set_->gather_gradients([&] {
      try {
        call_.team->run_all(backward_of_tiles, [&](auto part) {
          const tile_area own = to_->area(int{part()});
          if (own.empty()) return;
          auto& to = to_->each.template at<part()>();
          to.add(area_of(dy, to_->whole(), own).template to<device_of<decltype(to)>>(), true);
        });
        for (auto stage = call_.stages.rbegin(); stage != call_.stages.rend(); ++stage) (*stage)->backward(retain);
      } catch (...) {
        for (const auto& stage : call_.stages) stage->drop_gradients();
        to_->drop_gradients();
        throw;
      }
    });
    if constexpr (In::tracked)
      if (inputs_.back()) give_to_input();
  }

 private:
  void give_to_input() {
    using X = typename In::image::value_type;
    auto& x = static_cast<sinter::detail::typed_state<X, 4, H>&>(*inputs_.back());
    bool add = false;
    x.gradient(add);
    call_.team->run_all(backward_of_tiles, [&](auto part) {
      const tile_area own = from_->area(int{part()});
      if (own.empty()) return;
      auto& of_tile = from_->each.template at<part()>();
      const auto place = area_of(x.grad, from_->whole(), own);
      if (of_tile.grad.defined()) sinter::detail::write_or_add(of_tile.grad.template to<H>(), place, add);
      else if (!add) place.in_place() = X(0);
      of_tile.drop_gradient();
    });
  }

  std::shared_ptr<Set> set_;
  Call call_;
  In from_;
  Out to_;
  std::vector<state_ptr> inputs_;
};

template <class M, class Grid>
struct tile_mistake_of {
  static constexpr auto find() {
    return sinter::detail::mistake<grid_that_is_no_tiles<Grid>,
                                   name_rows_columns_and_devices_as_in_tiles_1_2_numa_0_numa_1>{};
  }
};
template <class M, int R, int C, class... D>
struct tile_mistake_of<M, tiles<R, C, D...>> {
  static constexpr auto find() {
    using sinter::detail::mistake;
    constexpr int n = sizeof...(D);
    if constexpr (R < 1 || C < 1 || R * C != n)
      return mistake<grid_needs_one_device_per_tile<R, C, n>, list_this_many_devices<R * C>>{};
    else if constexpr (!sinter::detail::is_fitting<replication_mistake<M, D...>>) return replication_mistake<M, D...>{};
    else if constexpr (!std::is_void_v<typename without_tile_rule<M>::type>)
      return mistake<module_has_no_tile_rule<typename without_tile_rule<M>::type>,
                     put_it_behind_the_tiles_or_specialise_nn_tile_rule>{};
    else return sinter::detail::fitting<void>{};
  }
};
template <class M, class Grid>
using tile_mistake = decltype(tile_mistake_of<bare<M>, Grid>::find());

template <class M, class Grid>
struct tile_set_for;
template <class M, int R, int C, class... D>
struct tile_set_for<M, tiles<R, C, D...>> {
  using type = tile_set<M, D...>;
};

}  // namespace detail

/// What tile_parallel() returns: a module that takes and gives what its M does. See there.
template <is_module M, class Grid, class Exchange = detail::exchange_halos>
struct tile_parallel_over : module<tile_parallel_over<M, Grid, Exchange>> {
  using device_type = device_of<M>;
  using kind = typename M::kind;
  static constexpr bool runs_copies = true;  ///< of its members, in their stead
  template <class To, class K>
  using rebind = tile_parallel_over<typename detail::rebound<M, To, K>::type, Grid, Exchange>;

  tile_parallel_over() = default;
  explicit tile_parallel_over(M m) : module(std::move(m)) {}

  M module;
  nn::mode mode;

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    f("module", s.module...);
    f("mode", s.mode...);
  }

  /// module(x), each device with a tile of x (N,C,H,W) and of every image behind it. Errors: those of module; what a
  /// tile meets is named after its device.
  template <class E>
  auto forward(const E& input) const {
    using X = sinter::detail::evaluated<E>;
    static_assert(rank_of<X> == 4, "sinter: tile_parallel cuts images of shape (N,C,H,W)");
    using In = detail::image_in_tiles<element_of<X>, Grid, detail::is_variable<X>>;
    const X x = sinter::detail::eval_to_read(input);
    const std::shared_ptr<set> shared = replicas_.of(module);
    set& replicas = *shared;
    const auto turn = replicas.take_turn();
    replicas.refresh(module, mode.training);
    detail::tile_call<Grid, Exchange> call{replicas.team, {}};
    const In in = cut<In>(replicas, x);
    const auto out = detail::run_chain<0>(call, chains(replicas), in);
    if (mode.training) replicas.merge_first(module);
    const auto value = joined(replicas, *out);
    using Out = sinter::detail::bare<decltype(out)>;
    if constexpr (Out::tracked) {
      if (!out->has_graph) return sinter::detail::unrecorded<1>(value);
      sinter::detail::state_ptr of_x;
      if constexpr (In::tracked) of_x = sinter::detail::access::state_of(x);
      using entry = detail::tiled_backward<set, decltype(call), In, Out, device_type>;
      return sinter::detail::produced<1>(value,
                                         sinter::detail::make_owned<entry>(shared, std::move(call), in, out, of_x));
    } else {
      return value;
    }
  }

 private:
  using set = typename detail::tile_set_for<M, Grid>::type;

  static auto chains(set& replicas) {
    return [&]<std::size_t... P>(std::index_sequence<P...>) {
      return sinter::detail::parts<decltype(chain_of(replicas.template replica<P>()))...>(
          chain_of(replicas.template replica<P>())...);
    }(std::make_index_sequence<std::size_t{set::count}>{});
  }
  template <class R>
  static auto chain_of(const R& replica) {
    return detail::flat_steps<const R&>(replica);
  }
  template <class In, class X>
  static In cut(set& replicas, const X& x) {
    const In in{std::make_shared<typename In::image>(x.shape())};
    if constexpr (In::tracked) in->has_graph = sinter::detail::recording() && sinter::detail::access::state_of(x);
    const auto value = detail::stored_value(x);
    replicas.team->run_all(detail::forward_of_tiles, [&](auto part) {
      auto& to = in->each.template at<part()>();
      const detail::tile_area own = in->area(int{part()});
      if (!own.empty())
        to.value = detail::area_of(value, in->whole(), own).template to<sinter::device_of<decltype(to)>>();
    });
    return in;
  }
  template <class Image>
  static auto joined(set& replicas, const Image& image) {
    using T = typename Image::value_type;
    const auto& first = image.each.template at<0>().value;
    const auto strides = first.defined() ? sinter::detail::dense_strides_like(image.shape, first.strides())
                                         : sinter::detail::strides_in(memory_format::channels_last, image.shape);
    const auto all = tensor<T, 4, device_type>::uninitialized(image.shape, strides);
    replicas.team->run_all(detail::forward_of_tiles, [&](auto part) {
      const detail::tile_area own = image.area(int{part()});
      if (!own.empty())
        detail::area_of(all, image.whole(), own).in_place() =
            image.each.template at<part()>().value.template to<device_type>();
    });
    return all;
  }

  detail::replica_place<set> replicas_;
};

/// The module over a Grid = nn::tiles<Rows, Columns, D...> of devices: each picture is cut into Rows x Columns tiles,
/// one for each device, which has a replica of the module. A layer reads what it needs of other tiles (the halo, from
/// all owners it touches), and backward hands the gradients of these elements to their owners. So values and gradients
/// are those of one device to rounding, for any kernel, stride, padding with zeros, dilation and pooling; batch norm
/// in training takes the moments of all tiles, and dropout's masks are parts of the whole image's. It takes and gives
/// images on the module's device, and stands between other modules.
///
/// M consists of layers that have a tile_rule: conv2d, max_pool2d, avg_pool2d, batch_norm2d, zero_pad2d,
/// constant_pad2d, elementwise activations, dropout, dropout2d, and chains of these; modules of your own say so by a
/// specialisation. A layer without one, such as flatten, does not compile and is named.
///
///     const nn::sequential features{nn::conv2d(3, 16, 3, gen, {.padding = 1}), nn::relu(), nn::max_pool2d(2)};
///     auto tiled = nn::tile_parallel<nn::tiles<1, 2, numa<0>, numa<1>>>(features);
///     variable y = tiled(images);
template <class Grid, class M>
  requires(is_module<M> && sinter::detail::is_fitting<detail::tile_mistake<M, Grid>>)
tile_parallel_over<M, Grid> tile_parallel(const M& model) {
  return tile_parallel_over<M, Grid>(model);
}
template <class Grid, class M, class Problem = typename detail::tile_mistake<M, Grid>::problem,
          class Fix = typename detail::tile_mistake<M, Grid>::fix>
  requires(is_module<M>)
void tile_parallel(const M&) = delete;

}  // namespace nn
}  // namespace sinter

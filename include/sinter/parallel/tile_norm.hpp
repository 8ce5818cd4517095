// sinter/parallel/tile_norm.hpp: batch norm by the moments of all tiles.
#pragma once

#include "sinter/parallel/merged_moments.hpp"
#include "sinter/parallel/tile_stage.hpp"

namespace sinter::nn::detail {

/// Batch norm and elementwise modules behind it. The moments are leaves of each tile's graph.
template <class Call, class In, class Out, class... Graph>
struct norm_stage final : graph_stage<norm_stage<Call, In, Out, Graph...>, Call, Out, Graph...> {
  using base = graph_stage<norm_stage, Call, Out, Graph...>;
  In from;
  bool of_batch;

  norm_stage(const Call& call, In in, Out out, bool moments_of_batch)
      : base(call, std::move(out)), from(std::move(in)), of_batch(moments_of_batch) {}

  /// With n elements of a channel, mean m, and gradients a and b of mean and variance over all tiles:
  /// dx = that of the tile's graph + a / n + 2 b / n (x - m).
  void give_gradients() {
    if constexpr (In::tracked) {
      if (!from->has_graph) return;
      using first = bare<decltype(*std::get<1>(this->graphs.template at<0>().x))>;
      typename first::tensor_type of_mean, of_variance;
      if (of_batch) {
        add_up<1>(of_mean);
        add_up<2>(of_variance);
      }
      const bool through_moments = of_mean.defined() && of_variance.defined();
      const double n = static_cast<double>(this->to->shape.numel() / std::max<index_t>(this->to->shape[1], 1));
      this->team->run_all(backward_of_tiles, [&](auto part) {
        auto& [x, mean, variance] = this->graphs.template at<part()>().x;
        if (!x) return;
        auto& of_tile = from->each.template at<part()>();
        if (x->numel() == 0) return of_tile.add(x->value(), true);  // no images: their gradient has no elements either
        const auto g = gradient_of(x);
        if (!through_moments) {
          if (g.defined()) of_tile.add(g, false);
          return;
        }
        using X = bare<decltype(*x)>;
        using T = element_of<X>;
        using C = compute_type<T>;
        using D = device_of<X>;
        const auto shift = sinter::detail::per_channel<4>(eval(of_mean.template to<D>() * static_cast<C>(1 / n)));
        const auto slope = sinter::detail::per_channel<4>(eval(of_variance.template to<D>() * static_cast<C>(2 / n)));
        const auto distance = cast<C>(x->value()) - sinter::detail::per_channel<4>(mean->value());
        if (g.defined()) of_tile.add(eval(cast<T>(cast<C>(g) + (shift + slope * distance))), false);
        else of_tile.add(eval(cast<T>(shift + slope * distance)), false);
      });
    }
  }
  void drop_inputs() noexcept { from->drop_gradients(); }

 private:
  /// The gradients of leaf number Leaf of all tiles, in their order.
  template <std::size_t Leaf, class Sum>
  void add_up(Sum& sum) {
    sinter::detail::each_part<base::count>([&](auto part) {
      const auto g = gradient_of(std::get<Leaf>(this->graphs.template at<part()>().x));
      if (!g.defined()) return;
      if (sum.defined()) sum += g.template to<device_of<Sum>>();
      else sum = g.template to<device_of<Sum>>().clone();
    });
  }
};

template <class M, class X, class V>
auto normalised_on_tile(const M& m, const X& x, const V& mean, const V& variance) {
  const sinter::detail::channel_moments<V> moments{mean, variance};
  if constexpr (M::is_affine) return sinter::detail::normalised_channels(x, moments, m.settings.eps, m.weight, m.bias);
  else return sinter::detail::normalised_channels(x, moments, m.settings.eps);
}

/// What batch_norm checks of x, by its shape.
template <class M>
void check_norm(const M& m, const extents<4>& x, bool of_batch) {
  struct shape_of_x {
    extents<4> all;
    const extents<4>& shape() const { return all; }
  };
  const shape_of_x whole{x};
  if constexpr (M::is_affine) sinter::detail::check_channel_operands("batch_norm", whole, m.weight, m.bias);
  if constexpr (M::keeps_running_moments)
    sinter::detail::check_channel_operand("batch_norm", "running mean", whole, m.running_mean);
  if (of_batch && m.state.training && x[1] > 0 && x.numel() / x[1] == 1)
    sinter::detail::refuse<shape_error>(
        {"batch_norm: x of shape ", x, " has one value for each channel, which has no variance to train with"});
}

/// The moments of all tiles as (2,C) on the device of tile 0, towards which its running ones move.
template <class Call, class M, class In>
auto moments_of_tiles(Call& call, const M& m, const In& in) {
  using D = device_of<M>;
  using C = typename M::moment;
  using tiles_of = typename In::image;
  return [&]<std::size_t... P>(std::index_sequence<P...>) {
    sinter::detail::parts<tensor<C, 2, typename tiles_of::template device_at<P>>...> each;
    call.team->run_all(forward_of_tiles, [&](auto part) {
      const auto& x = in->each.template at<part()>().value;
      if (x.defined() && x.numel() > 0) each.template at<part()>() = batch_moments(x);
    });
    merged_moments<C, D> all;
    sinter::detail::each_part<tiles_of::count>([&](auto part) {
      const auto& one = each.template at<part()>();
      if (one.defined()) all.add(in->each.template at<part()>().value.numel() / in->shape[1], one.template to<D>());
    });
    const tensor<C, 2, D> both = all.moments(in->shape[1]);
    if constexpr (M::keeps_running_moments)
      if (all.count > 0)
        sinter::detail::move_running(m.running_mean.value(), m.running_var.value(), both, m.next_momentum(),
                                     static_cast<index_t>(all.count));
    return both;
  }(std::make_index_sequence<std::size_t{tiles_of::count}>{});
}

template <class In, std::size_t P, class C>
using moment_leaf = std::conditional_t<In::tracked, variable<C, 1, device_of<tile_leaf<In, P>>>,
                                       tensor<C, 1, device_of<tile_leaf<In, P>>>>;
template <std::size_t I, std::size_t End, class Chains, class In, std::size_t P, class C>
using normalised_result =
    result_on_tile<I + 1, End, Chains, P,
                   decltype(normalised_on_tile(std::get<I>(std::declval<const Chains&>().template at<P>()),
                                               std::declval<const tile_leaf<In, P>&>(),
                                               std::declval<const moment_leaf<In, P, C>&>(),
                                               std::declval<const moment_leaf<In, P, C>&>()))>;

template <std::size_t I, std::size_t End, class Call, class Chains, class In>
auto run_norm(Call& call, const Chains& chains, const In& in) {
  const auto& first = std::get<I>(chains.template at<0>());
  using M = bare<decltype(first)>;
  using C = typename M::moment;
  bool of_batch = true;
  if constexpr (M::keeps_running_moments) of_batch = first.state.training;
  check_norm(first, in->shape, of_batch);
  tensor<C, 2, device_of<M>> moments;
  if (of_batch) moments = moments_of_tiles(call, first, in);
  return [&]<std::size_t... P>(std::index_sequence<P...>) {
    using Out = image_of_results<normalised_result<I, End, Chains, In, 0, C>, typename Call::grid>;
    using Stage = norm_stage<Call, In, Out,
                             tile_graph<normalised_result<I, End, Chains, In, P, C>, tile_leaf<In, P>,
                                        moment_leaf<In, P, C>, moment_leaf<In, P, C>>...>;
    auto stage = std::make_unique<Stage>(call, in, Out{std::make_shared<typename Out::image>(in->shape)}, of_batch);
    call.team->run_all(forward_of_tiles, [&](auto part) {
      if (in->area(int{part()}).empty()) return;
      using L = moment_leaf<In, part(), C>;
      const auto& m = std::get<I>(chains.template at<part()>());
      auto& [x, mean, variance] = stage->graphs.template at<part()>().x;
      x.emplace(make_leaf<tile_leaf<In, part()>>(in->each.template at<part()>().value, in->has_graph));
      const bool leaves = of_batch && in->has_graph;
      if (of_batch) {
        mean.emplace(make_leaf<L>(moments[0].template to<device_of<L>>(), leaves));
        variance.emplace(make_leaf<L>(moments[1].template to<device_of<L>>(), leaves));
      } else {
        mean.emplace(make_leaf<L>(m.running_mean.value(), leaves));
        variance.emplace(make_leaf<L>(m.running_var.value(), leaves));
      }
      stage->template set_result<part()>(
          eval(run_on_tile<I + 1, End>(chains.template at<part()>(), normalised_on_tile(m, *x, *mean, *variance),
                                       stage->to.place(int{part()}, in->shape))));
    });
    return Stage::finish(call, std::move(stage));
  }(std::make_index_sequence<std::size_t{In::count}>{});
}

}  // namespace sinter::nn::detail

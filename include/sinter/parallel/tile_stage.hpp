// sinter/parallel/tile_stage.hpp: a chain of modules over tiles, one statement after the other, and the way back.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "sinter/parallel/team.hpp"
#include "sinter/parallel/tile_image.hpp"
#include "sinter/parallel/tile_rule.hpp"

namespace sinter::nn::detail {

/// A statement over tiles. Those of a call are walked back in reverse order.
struct tile_stage {
  virtual ~tile_stage() = default;
  /// Adds to the gradients of the images that the statement has read, given that of its result, which it drops.
  virtual void backward(bool retain) = 0;
  virtual void drop_gradients() noexcept = 0;
};

/// The threads of tiles.
template <int Count>
class tile_team {
 public:
  explicit tile_team(std::vector<std::string> names) : team_(std::move(names)) {}
  /// Calls f(part as a type) for each tile, at the same time. All draw what tile 0 draws.
  template <class F>
  void run_all(const char* doing, const F& f) {
    sinter::detail::draw_log log;
    sinter::detail::draw_source* const outer = sinter::detail::current_draws();
    team_.run(doing, [&](int part) {
      using role = sinter::detail::draw_source::role;
      const sinter::detail::draw_source draws(log, part == 0 ? role::writes : role::repeats, outer);
      sinter::detail::with_part<Count>(part, f);
    });
  }

 private:
  sinter::detail::team team_;
};
inline constexpr const char *forward_of_tiles = "tile_parallel", *backward_of_tiles = "backward of tile_parallel";

/// A call of a model over tiles: the threads it runs on, and its statements so far.
template <class Grid, class Exchange>
struct tile_call {
  using grid = Grid;
  using exchange = Exchange;
  using team_type = tile_team<tiles_in<Grid>>;
  std::shared_ptr<team_type> team;
  std::vector<std::unique_ptr<tile_stage>> stages;
};

/// An image between two statements. Tracked: gradients of it can be asked for.
template <class T, class Grid, bool Tracked>
struct image_in_tiles {
  using image = tiled_image<T, Grid>;
  static constexpr bool tracked = Tracked;
  static constexpr int count = image::count;
  std::shared_ptr<image> data;

  image* operator->() const { return data.get(); }
  image& operator*() const { return *data; }
  tile_place place(int part, const extents<4>& input) const {
    const tile_area own = data->area(part);
    return {data->shape, input, own.rows.begin, own.columns.begin};
  }
};

/// What one tile's statement is fed with: a leaf of a graph of its own where the image is tracked.
template <class Image, std::size_t P>
using tile_leaf =
    std::conditional_t<Image::tracked,
                       variable<typename Image::image::value_type, 4, typename Image::image::template device_at<P>>,
                       tensor<typename Image::image::value_type, 4, typename Image::image::template device_at<P>>>;
template <class Leaf, class Value>
Leaf make_leaf(const Value& value, bool has_graph) {
  if constexpr (is_variable<Leaf>)
    if (!has_graph) return sinter::detail::unrecorded<1>(value);
  return Leaf(value);
}
/// The gradient of a leaf, undefined for zero.
template <class Leaf>
auto gradient_of(const std::optional<Leaf>& leaf) {
  typename Leaf::tensor_type g;
  if (leaf && leaf->has_grad()) g = leaf->grad();
  return g;
}

/// The graph of one tile, from its leaves to its result.
template <class Y, class... X>
struct tile_graph {
  using result = Y;
  std::tuple<std::optional<X>...> x;
  std::optional<Y> y;

  bool has_graph() const {
    if constexpr (is_variable<Y>) return y && bool{access::state_of(*y)};
    else return false;
  }
  template <class Tile>
  void backward(Tile& of_result, bool retain) {
    if constexpr (is_variable<Y>)
      if (has_graph() && of_result.grad.defined()) y->backward(of_result.grad, {.retain_graph = retain});
    of_result.drop_gradient();
  }
  void drop_gradients() noexcept {
    std::apply([](auto&... leaf) { (drop_gradient(leaf), ...); }, x);
  }

 private:
  template <class Leaf>
  static void drop_gradient(std::optional<Leaf>& leaf) noexcept {
    if constexpr (is_variable<Leaf>)
      if (leaf) leaf->zero_grad();
  }
};

/// A statement with one graph for each tile. Self::give_gradients() adds the leaves' gradients to the images.
template <class Self, class Call, class Out, class... Graph>
struct graph_stage : tile_stage {
  static constexpr int count = sizeof...(Graph);
  std::shared_ptr<typename Call::team_type> team;
  Out to;
  sinter::detail::parts<Graph...> graphs;

  graph_stage(const Call& call, Out out) : team(call.team), to(std::move(out)) {}

  /// Keeps what a tile has computed.
  template <std::size_t P, class Y>
  void set_result(Y&& y) {
    to->each.template at<P>().value = stored_value(y);
    graphs.template at<P>().y.emplace(std::forward<Y>(y));
  }
  void backward(bool retain) final {
    team->run_all(backward_of_tiles,
                  [&](auto part) { graphs.template at<part()>().backward(to->each.template at<part()>(), retain); });
    static_cast<Self*>(this)->give_gradients();
    drop_graph_gradients();
  }
  void drop_gradients() noexcept final {
    drop_graph_gradients();
    to->drop_gradients();
    static_cast<Self*>(this)->drop_inputs();
  }
  /// The result, and the statement among those of the call where there is something to walk back.
  static Out finish(Call& call, std::unique_ptr<Self> self) {
    sinter::detail::each_part<count>([&](auto part) {
      self->to->has_graph = self->to->has_graph || self->graphs.template at<part()>().has_graph();
    });
    Out to = self->to;
    if (to->has_graph) call.stages.push_back(std::move(self));
    return to;
  }

 private:
  void drop_graph_gradients() noexcept {
    sinter::detail::each_part<count>([&](auto part) { graphs.template at<part()>().drop_gradients(); });
  }
};

/// Modules From to To - 1 of a chain, on one tile.
template <std::size_t From, std::size_t To, class Chain, class X>
auto run_on_tile(const Chain& chain, X&& x, const tile_place& place) {
  if constexpr (From == To) {
    return bare<X>(std::forward<X>(x));
  } else {
    const auto& m = std::get<From>(chain);
    return run_on_tile<From + 1, To>(chain, tile_rule<bare<decltype(m)>>::forward(m, std::forward<X>(x), place), place);
  }
}
/// Where the statement ends that begins with module I of a chain.
template <class Chain, std::size_t I>
constexpr std::size_t end_of_statement() {
  if constexpr (I == std::tuple_size_v<Chain>) return I;
  else if constexpr (is_tile_pointwise<bare<std::tuple_element_t<I, Chain>>>) return end_of_statement<Chain, I + 1>();
  else return I;
}

template <class Chains>
using first_chain = bare<decltype(std::declval<const Chains&>().template at<0>())>;
template <std::size_t From, std::size_t To, class Chains, std::size_t P, class X>
using result_on_tile = sinter::detail::evaluated<decltype(run_on_tile<From, To>(
    std::declval<const Chains&>().template at<P>(), std::declval<const X&>(), std::declval<const tile_place&>()))>;
template <class Y, class Grid>
using image_of_results = image_in_tiles<element_of<Y>, Grid, is_variable<Y>>;

/// A window and elementwise modules behind it, or elementwise modules alone.
template <class Call, class In, class Out, class... Graph>
struct window_stage final : graph_stage<window_stage<Call, In, Out, Graph...>, Call, Out, Graph...> {
  using base = graph_stage<window_stage, Call, Out, Graph...>;
  In from;
  tile_area read[sizeof...(Graph)];

  window_stage(const Call& call, In in, Out out, const tile_windows& w) : base(call, std::move(out)), from(in) {
    for (int part = 0; part < base::count; ++part) {
      const tile_area own = this->to->area(part);
      read[part] = {needed(w.rows, own.rows), needed(w.columns, own.columns)};
    }
  }
  void give_gradients() {
    if constexpr (In::tracked) {
      if (!from->has_graph) return;
      this->team->run_all(backward_of_tiles, [&](auto part) {
        gather_strips<part(), typename Call::exchange>(
            *from, read, [&](auto reader) { return gradient_of(std::get<0>(this->graphs.template at<reader()>().x)); });
      });
    }
  }
  void drop_inputs() noexcept { from->drop_gradients(); }
};

template <std::size_t I, std::size_t End, class Call, class Chains, class In>
auto run_window(Call& call, const Chains& chains, const In& in) {
  using Head = bare<std::tuple_element_t<I, first_chain<Chains>>>;
  extents<4> shape = in->shape;
  tile_windows windows;
  double outside = 0;
  if constexpr (has_tile_windows<Head>) {
    const auto& head = std::get<I>(chains.template at<0>());
    shape = tile_rule<Head>::shape(head, in->shape);
    windows = tile_rule<Head>::windows(head);
    outside = tile_rule<Head>::outside(head);
  }
  return [&]<std::size_t... P>(std::index_sequence<P...>) {
    using Out = image_of_results<result_on_tile<I, End, Chains, 0, tile_leaf<In, 0>>, typename Call::grid>;
    using Stage = window_stage<Call, In, Out,
                               tile_graph<result_on_tile<I, End, Chains, P, tile_leaf<In, P>>, tile_leaf<In, P>>...>;
    auto stage = std::make_unique<Stage>(call, in, Out{std::make_shared<typename Out::image>(shape)}, windows);
    call.team->run_all(forward_of_tiles, [&](auto part) {
      if (stage->to->area(int{part()}).empty()) return;
      auto& x = std::get<0>(stage->graphs.template at<part()>().x);
      x.emplace(make_leaf<tile_leaf<In, part()>>(
          fetched<part(), typename Call::exchange>(*in, stage->read[part()], outside), in->has_graph));
      stage->template set_result<part()>(
          eval(run_on_tile<I, End>(chains.template at<part()>(), *x, stage->to.place(int{part()}, in->shape))));
    });
    return Stage::finish(call, std::move(stage));
  }(std::make_index_sequence<std::size_t{In::count}>{});
}

/// The sum of two images, and elementwise modules behind it.
template <class Call, class A, class B, class Out, class... Graph>
struct sum_stage final : graph_stage<sum_stage<Call, A, B, Out, Graph...>, Call, Out, Graph...> {
  using base = graph_stage<sum_stage, Call, Out, Graph...>;
  A a;
  B b;

  sum_stage(const Call& call, A x, B y, Out out) : base(call, std::move(out)), a(std::move(x)), b(std::move(y)) {}
  void give_gradients() {
    this->team->run_all(backward_of_tiles, [&](auto part) {
      const auto& x = this->graphs.template at<part()>().x;
      give<part()>(a, std::get<0>(x));
      give<part()>(b, std::get<1>(x));
    });
  }
  void drop_inputs() noexcept {
    a->drop_gradients();
    b->drop_gradients();
  }

 private:
  template <std::size_t P, class Image, class Leaf>
  static void give(const Image& image, const std::optional<Leaf>& leaf) {
    if constexpr (is_variable<Leaf>) {
      const auto g = gradient_of(leaf);
      if (image->has_graph && g.defined()) image->each.template at<P>().add(g, false);
    }
  }
};

template <std::size_t I, std::size_t End, class Call, class Chains, class A, class B>
auto run_sum(Call& call, const Chains& chains, const A& a, const B& b) {
  if (!(a->shape == b->shape))
    sinter::detail::refuse<shape_error>(
        {"tile_sum: the branches give ", a->shape, " and ", b->shape, "; their results must have one shape"});
  return [&]<std::size_t... P>(std::index_sequence<P...>) {
    using Out = image_of_results<result_on_tile<I, End, Chains, 0, decltype(tile_leaf<A, 0>() + tile_leaf<B, 0>())>,
                                 typename Call::grid>;
    using Stage =
        sum_stage<Call, A, B, Out,
                  tile_graph<result_on_tile<I, End, Chains, P, decltype(tile_leaf<A, P>() + tile_leaf<B, P>())>,
                             tile_leaf<A, P>, tile_leaf<B, P>>...>;
    auto stage = std::make_unique<Stage>(call, a, b, Out{std::make_shared<typename Out::image>(a->shape)});
    call.team->run_all(forward_of_tiles, [&](auto part) {
      if (a->area(int{part()}).empty()) return;
      auto& [x, y] = stage->graphs.template at<part()>().x;
      x.emplace(make_leaf<tile_leaf<A, part()>>(a->each.template at<part()>().value, a->has_graph));
      y.emplace(make_leaf<tile_leaf<B, part()>>(b->each.template at<part()>().value, b->has_graph));
      stage->template set_result<part()>(
          eval(run_on_tile<I, End>(chains.template at<part()>(), *x + *y, stage->to.place(int{part()}, a->shape))));
    });
    return Stage::finish(call, std::move(stage));
  }(std::make_index_sequence<std::size_t{A::count}>{});
}

}  // namespace sinter::nn::detail

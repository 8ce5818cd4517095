// sinter/cuda/backend.hpp: evaluation on GPUs.
#pragma once

#include <vector>

#include "sinter/cuda/group.hpp"
#include "sinter/cuda/map_sums.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/cuda/reduce.hpp"
#include "sinter/cuda/runtime.hpp"

namespace sinter::cuda_impl {

using sinter::detail::any_shape;
using sinter::detail::shape_upto;
using sinter::detail::temporary;

/// The axes of an expression without points, with its leaves bound.
template <int N>
pass_axes axes_of(const any_shape& shape, const leaf_ref* leaves) {
  static_assert(sinter::detail::pass_of<N> > 0);
  pass_axes axes(shape.data, shape.rank, N);
  for (int s = 0; s < N; ++s) axes.bind(s, leaves[s]);
  return axes;
}

/// The values of an expression without points, over its own shape.
template <class E>
using source_for = element_source<sinter::detail::lowered<false, E>, outer_axes_of(E::rank)>;
template <class E>
source_for<E> source_of(const E& e) {
  const sinter::detail::leaves_of<E> leaves(e);
  return make_source<E::rank>(sinter::detail::lower<false>(e),
                              axes_of<source_for<E>::leaves>({e.shape().data(), E::rank}, leaves));
}

/// to (+)= from.
template <class From, class To>
struct add_pass {
  static constexpr int inputs = 1, outputs = 1;
  using input_types = sinter::detail::kernel::type_list<From>;
  using output_types = sinter::detail::kernel::type_list<To>;
  static constexpr std::uint64_t inputs_read = 1;
  static constexpr bool narrow = narrow_element<To>;
  template <class M>
  SINTER_WORD void operator()(const M& m) const {
    m.template put<0, To>(m.template load<0, From>());
  }
};

/// Passes R folded over the values of K, of at most Axes axes, along those marked in `reduced`, to `put`.
template <device D, class R, int Axes, class K, class Put>
void reduce_on(const char* what, const K& plan, const pass_axes& axes, const bool* reduced, const Put& put) {
  const work w{what, axes.shape, axes.rank};
  std::vector<temporary<D>> pieces;
  plan_reduction<R, Axes>(
      plan, axes, reduced, put, [&w](const auto& body, const launch_shape& s) { launch_on<D>(w, body, s); },
      [&pieces](std::size_t bytes) { return pieces.emplace_back(bytes).data(); },
      [&w, &put](const auto& source, index_t results, index_t n) {
        return gpu<D>::folds().template reduce<R>(w, source, results, n, put);
      });
}

template <device D, bool Sums = false, class Pass, int Axes>
void run_pass(const char* what, const Pass& pass, const shape_upto<Axes>& shape, const leaf_ref* leaves,
              const sink_ref* sinks);

/// Folds `values`, dense over the pass's shape, into a sink of elements To that repeats along some of its axes.
template <class T, class To, device D>
void fold_into(const any_shape& shape, void* values, const sink_ref& sink) {
  bool reduced[max_rank] = {};
  index_t kept = 1;
  for (int d = 0; d < shape.rank; ++d) {
    reduced[d] = sink.strides[d] == 0;
    if (!reduced[d]) kept *= shape.data[d];
  }
  pass_axes axes(shape.data, shape.rank, 1);
  axes.bind_dense(0, values);
  const bool at_once = !sink.add && std::is_same_v<T, To>;
  const temporary<D> memory(at_once ? 0 : static_cast<std::size_t>(kept) * sizeof(T));
  T* const sums = static_cast<T*>(at_once ? sink.data : memory.data());
  reduce_on<D, sinter::detail::sum_reducer<T>, max_rank>("sum of a gradient", sinter::detail::kernel::leaf<T, false>{},
                                                         axes, reduced, store_results<T>{sums});
  if (at_once) return;
  leaf_ref from;
  from.data = sums;
  from.shape = &kept;
  from.rank = 1;
  from.element_size = sizeof(T);
  constexpr index_t one = 1;
  from.strides = &one;
  sink_ref to = sink;
  to.strides[0] = 1;
  run_pass<D>("adding a gradient", add_pass<T, To>{}, shape_upto<1>(&kept, 1), &from, &to);
}

/// A backward pass with sums, as the function that starts it.
struct sums_pass {
  work done;
  int lanes;
  int room;                                               ///< how many sums a block has memory for
  const sinter::detail::kernel::gradient_format* format;  ///< of each output
  const void* formula;
  void (*start)(const sums_pass&, const pass_operands&, const sums_plan&);
};
template <class Pass, int Axes, device D>
void start_sums(const sums_pass& pass, const pass_operands& p, const sums_plan& plan) {
  const map_sums_body<Pass, Axes> body(*static_cast<const Pass*>(pass.formula), p, plan);
  launch_on<D>(pass.done, body, body.launch());
}

/// Runs a pass whose outputs that `fold` are sums: in one kernel where that can be, else element by element, to be
/// folded. Narrow, Doubles: there may be gradients of half and bfloat16, of double.
template <device D, bool Narrow, bool Doubles>
void run_sums(const sums_pass& pass, const pass_operands& operands, const bool* folds, const any_shape& shape,
              const sink_ref* sinks) {
  using sinter::detail::kernel::gradient_format;
  pass_operands p = operands;  // copied here, which is compiled once
  index_t numel = 1;
  for (int d = 0; d < shape.rank; ++d) numel *= shape.data[d];
  bool separate[sinter::detail::max_operands] = {};
  std::vector<temporary<D>> memory;
  const auto take = [&memory](index_t bytes) { return memory.emplace_back(static_cast<std::size_t>(bytes)).data(); };
  for (bool done = false; !done;) {
    sums_plan plan;
    plan.format = pass.format;
    pass_operands now = p;
    now.axes.coalesce();
    done = plan_sums(now, pass.lanes, pass.room, folds, separate, plan);
    if (done && plan.groups > 0) {
      for (int s = 0; s < p.outputs; ++s)
        if (const index_t n = plan.partial_sums(plan.kind[s], now.axes.inner()))
          plan.partial[s] = static_cast<double*>(take(n * index_t{sizeof(double)}));
      plan.arrivals = gpu<D>::arrivals();
      pass.start(pass, now, plan);
    }
    for (int s = 0; s < p.outputs; ++s) {
      const int at = p.inputs + s;
      if (!separate[s] || p.axes.data[at] != sinks[s].data) continue;
      if (sinter::detail::kernel::is_narrow(pass.format[s])) {
        p.size[at] = sizeof(float);
        p.wide[s] = true;
      }
      p.axes.bind_dense(at, take(numel * p.size[at]));
      p.add[s] = false;
    }
  }
  for (int s = 0; s < p.outputs; ++s) {
    if (!separate[s]) continue;
    const auto fold = [&]<class T, class To>() { fold_into<T, To, D>(shape, p.axes.data[p.inputs + s], sinks[s]); };
    const gradient_format format = pass.format[s];
    if constexpr (Narrow) {
      if (format == gradient_format::half) fold.template operator()<float, half>();
      if (format == gradient_format::bfloat16) fold.template operator()<float, bfloat16>();
    }
    if constexpr (Doubles) {
      if (format == gradient_format::float64) fold.template operator()<double, double>();
    }
    if (format == gradient_format::float32) fold.template operator()<float, float>();
  }
}

/// Runs an elementwise pass in one kernel. A sink that repeats along an axis, the gradient of a broadcast leaf, is a
/// sum. Sums: there surely is such a sink; a pass without any has a kernel of its own, which needs fewer registers.
template <device D, bool Sums, class Pass, int Axes>
void run_pass(const char* what, const Pass& pass, const shape_upto<Axes>& shape, const leaf_ref* leaves,
              const sink_ref* sinks) {
  using sinter::detail::pass_of;
  constexpr int inputs = Pass::inputs, outputs = Pass::outputs;
  static_assert(pass_of<inputs> > 0 && pass_of<outputs> > 0);
  const work done(what, shape.data, shape.rank);
  pass_operands p(shape.data, shape.rank, leaves, inputs, sinks, outputs);
  if constexpr (requires { Pass::folds; }) {  // only gradients do: no statement writes to an element twice
    static constexpr sinter::detail::gradient_formats<typename Pass::plan_type> format{};
    bool folds[std::size_t{outputs}];
    if (p.find_repeated(folds) || Sums) {
      const sums_pass sums{done,      lanes_of<Pass>, map_sums_body<Pass, Axes>::room,
                           format.of, &pass,          &start_sums<Pass, Axes, D>};
      return run_sums<D, format.any_narrow, format.any_double>(sums, p, folds, shape, sinks);
    }
  }
  if constexpr (!Sums) {
    if constexpr (words_of<Pass> == 0) p.axes.order_by_memory(inputs);
    p.axes.coalesce();
    const map_body<Pass, Axes> body(pass, p);
    launch_on<D>(done, body, body.launch());
  }
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct backend<D> {
  /// Elementwise work on a result that another kernel has made: a kernel of its own, or, after a product, the tail of
  /// that.
  struct epilogue {
    storage_ptr* kept = nullptr;  ///< for what the kernel of a product can keep; see cuda/product_rules.hpp
    bool must_keep = false;       ///< nothing is to be done where it cannot
    virtual void run() const = 0;
    virtual cuda_impl::product_tail tail(index_t columns) const = 0;

   protected:
    ~epilogue() = default;
  };
  template <class T, class K, int Rank>
  class fused_epilogue final : public epilogue {
   public:
    using tree = K;

    fused_epilogue(const K& plan, const shape_upto<Rank>& shape, const leaf_ref* leaves, const sink_ref& sink)
        : plan_(plan), shape_(shape), leaves_(leaves), sink_(sink) {}
    void run() const override { map<T>(plan_, shape_, leaves_, sink_); }
    /// As the end of another kernel.
    auto finish(const cuda_impl::store_elements<T>& to, int lanes, index_t rows, index_t n) const {
      return cuda_impl::finish_elements<T, source>(to, rest().in_rows(lanes, rows, n));
    }
    auto finish(T* out) const { return cuda_impl::finish_results<T, source>{out, rest()}; }
    cuda_impl::product_tail tail(index_t columns) const override {
      return cuda_impl::tail_of<K>(columns, leaves_, sink_, this->must_keep);
    }

   private:
    using source = cuda_impl::element_source<K, cuda_impl::outer_axes_of(Rank)>;
    /// The formula without the leaves that stand for what the other kernel has made.
    source rest() const {
      source s = cuda_impl::make_source<Rank>(plan_, cuda_impl::axes_of<K::leaves>(shape_, leaves_));
      for (int l = 0; l < K::leaves; ++l) s.unread |= std::uint64_t{leaves_[l].data == sink_.data} << l;
      return s;
    }

    K plan_;
    shape_upto<Rank> shape_;
    const leaf_ref* leaves_;
    sink_ref sink_;
  };

  using gpu = cuda_impl::gpu<D>;

  /// Can the kernel of a product run K and keep K's argument?
  template <class K>
  static constexpr bool keeps_input = [] {
    if constexpr (cuda_impl::tail_formula<K>::fits)
      return cuda_impl::tail_formula<K>::act == cuda_impl::product_tail::activation::gelu_tanh;
    else return false;
  }();

  template <class T, class K, int Axes>
  static void map(const K& plan, const shape_upto<Axes>& shape, const leaf_ref* leaves, const sink_ref& out) {
    cuda_impl::run_pass<D>("an elementwise statement", kernel::forward_pass<K, T>{plan}, shape, leaves, &out);
  }
  template <class Roots, int Axes>
  static void map_many(const Roots& plan, const shape_upto<Axes>& shape, const leaf_ref* leaves,
                       const sink_ref* sinks) {
    cuda_impl::run_pass<D>("fused assignments", kernel::roots_pass<Roots>{plan}, shape, leaves, sinks);
  }
  /// outputs = K(inputs), element by element, over arrays of n; with others of its kind where such are gathered.
  template <class K>
  static void update(const K& plan, index_t n, const flat_values (&inputs)[K::leaves],
                     const flat_values (&outputs)[K::outputs]) {
    char *in[K::leaves], *out[K::outputs];
    for (int i = 0; i < K::leaves; ++i) in[i] = static_cast<char*>(inputs[i].data);
    for (int i = 0; i < K::outputs; ++i) out[i] = static_cast<char*>(outputs[i].data);
    using group = cuda_impl::grouped<D, kernel::roots_pass<K>>;
    if (auto* const gathering = independent_passes::current()) return gathering->of<group>().add({plan}, n, in, out);
    group alone;
    alone.add({plan}, n, in, out);
    alone.run();
  }
  template <class T, bool Sums = false, class K, int Axes>
  static void reverse(const K& plan, const shape_upto<Axes>& shape, const leaf_ref* inputs, const sink_ref* sinks) {
    cuda_impl::run_pass<D, Sums>("backward of a statement", kernel::reverse_pass<K, T>{plan}, shape, inputs, sinks);
  }
};

static_assert(is_backend<backend<cuda<0>>, cuda<0>>);

}  // namespace sinter::detail

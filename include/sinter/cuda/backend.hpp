// sinter/cuda/backend.hpp: evaluation on GPUs.
#pragma once

#include <vector>

#include "sinter/cuda/count.hpp"
#include "sinter/cuda/group.hpp"
#include "sinter/cuda/index.hpp"
#include "sinter/cuda/map_sums.hpp"
#include "sinter/cuda/product.hpp"
#include "sinter/cuda/reduce.hpp"
#include "sinter/cuda/rows.hpp"
#include "sinter/cuda/runtime.hpp"
#include "sinter/cuda/scan.hpp"
#include "sinter/cuda/sort.hpp"

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

  template <class R, class T, class K, int Axes, class Epilogue>
  static void reduce(const K& plan, const shape_upto<Axes>& shape, const leaf_ref* leaves, const bool* reduced,
                     typename R::result* out, const Epilogue* after) {
    const auto put = [&] {
      if constexpr (requires { after->finish(out); }) return after->finish(out);
      else return cuda_impl::store_results<typename R::result>{out};
    }();
    cuda_impl::reduce_on<D, R, Axes>("a reduction", plan, cuda_impl::axes_of<K::leaves>(shape, leaves), reduced, put);
  }

  template <class R, class E, class Out>
  static void scan(const E& e, int axis, const Out& out, const epilogue* after) {
    const cuda_impl::work what{"a scan", e.shape()};
    std::vector<temporary<D>> folds;
    cuda_impl::plan_scan<R>(
        source_of(e), around_axis(e.shape().data(), E::rank, axis), out,
        [&what](const auto& body, const cuda_impl::launch_shape& s) { cuda_impl::launch_on<D>(what, body, s); },
        [&folds](std::size_t bytes) { return folds.emplace_back(bytes).data(); },
        [&what, &out](const auto& source, index_t rows, index_t n) {
          return gpu::folds().template scan<R>(what, source, rows, n, out);
        });
    if (after != nullptr) after->run();
  }

  template <class E, class T, int R>
  static void sort(const E& e, int axis, bool descending, const tensor<T, R, D>& values,
                   const tensor<std::int64_t, R, D>& indices) {
    cuda_impl::sort_on<D, T>(source_of(e), around_axis(e.shape().data(), R, axis), descending, values.shape()[axis],
                             access::data(values), access::data(indices));
  }

  template <class E>
  static void count(const E& e, const tensor<std::int64_t, 1, D>& counts) {
    const cuda_impl::count_body<source_for<E>> body{source_of(e), e.shape().numel(), counts.numel(),
                                                    reinterpret_cast<unsigned long long*>(access::data(counts))};
    const cuda_impl::work what{"a count", e.shape()};
    if (!gpu::folds().count(what, body.source, body.n, body.bins, body.counts))
      cuda_impl::launch_on<D>(what, body, body.launch());
  }

  template <class Op, class E, class T, auto S, class Epilogue>
  static void rows(const Op& op, index_t n, const E& e, const tensor<T, S, D>& to,
                   const tensor<compute_type<T>, 1, D>& saved, const Epilogue* after) {
    const index_t count = to.numel() / std::max<index_t>(n, 1);
    constexpr int lanes = cuda_impl::row_lanes<T>;
    const cuda_impl::store_elements<T> store(access::data(to), lanes, count, n);
    if constexpr (requires { after->finish(store, lanes, count, n); })
      run_rows(op, n, e, to, saved, after->finish(store, lanes, count, n));
    else run_rows(op, n, e, to, saved, store);
  }
  template <class Op, class T, auto S>
  static void reverse_rows(const Op& op, index_t n, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                           const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    if (y.numel() == 0) return;
    const cuda_impl::reverse_rows_body<Op, T> body(op, access::data(y), access::data(g), access::data(saved),
                                                   access::data(dx), y.numel() / n, n, add);
    cuda_impl::launch_on<D>({Op::name, y.shape()}, body, body.launch());
  }

  /// Has the GPU look whether all n values lie in [0, extent), without waiting. If not, the index_error comes where the
  /// host next waits for the GPU or asks for another check.
  static void check_range(const char* op, const char* what, const std::int64_t* values, index_t n, index_t extent) {
    if (sinter::detail::capturing() == nullptr) cuda_impl::report_fault<D>();
    if (n == 0) return;
    cuda_impl::launch_on<D>({op, &n, 1}, cuda_impl::check_range_body{values, n, extent, op, what, gpu::fault_address()},
                            {1, sizeof(index_t) * cuda_impl::block_threads});
  }

  template <class T, int R>
  static void gather(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                     const tensor<T, R, D>& y) {
    if (index.numel() == 0) return;
    const cuda_impl::gather_body<T, R> body{lines_of(x, axis, index, y)};
    cuda_impl::launch_on<D>({"gather", index.shape()}, body,
                            {cuda_impl::blocks_for(index.numel(), cuda_impl::block_threads), 0});
  }
  template <class T, int R>
  static void scatter_add(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                          const tensor<T, R, D>& y, index_order order) {
    if (index.numel() == 0) return;
    const cuda_impl::gather_lines<R> lines = lines_of(x, axis, index, y);
    const cuda_impl::work what{"adding at indices", index.shape()};
    if (order == index_order::runs)
      cuda_impl::launch_on<D>(what, cuda_impl::scatter_runs_body<T, R>{lines},
                              {cuda_impl::blocks_for(index.numel(), cuda_impl::block_threads), 0});
    else
      cuda_impl::launch_on<D>(what, cuda_impl::scatter_add_body<T, R>{lines},
                              {cuda_impl::blocks_for(lines.lines.rows, cuda_impl::block_threads), 0});
  }

  template <class E, class T>
  static void cross_entropy(const E& e, const tensor<std::int64_t, 1, D>& labels, const tensor<T, 1, D>& loss,
                            const tensor<compute_type<T>, 1, D>& lse) {
    if (loss.numel() == 0) return;
    const cuda_impl::cross_entropy_body<source_for<E>, T> body(source_of(e), access::data(labels), access::data(loss),
                                                               access::data(lse), e.shape()[0], e.shape()[1]);
    cuda_impl::launch_on<D>({"cross_entropy", e.shape()}, body, body.launch());
  }
  template <class E, class T>
  static void reverse_cross_entropy(const E& e, const tensor<std::int64_t, 1, D>& labels,
                                    const tensor<compute_type<T>, 1, D>& lse, const tensor<T, 1, D>& g,
                                    const tensor<T, 2, D>& dx, bool add) {
    if (dx.numel() == 0) return;
    const cuda_impl::reverse_cross_entropy_body<source_for<E>, T> body(
        source_of(e), access::data(labels), access::data(lse), access::data(g), access::data(dx), e.shape()[0],
        e.shape()[1], add);
    cuda_impl::launch_on<D>({"backward of cross_entropy", e.shape()}, body, body.launch());
  }

  template <class T>
  static void matmul(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                     const epilogue* e) {
    if (e != nullptr && ((c.rows * c.columns > 0 && multiply_with_tail<T>(a, b, c, accumulate, *e)) || e->must_keep))
      return;
    cuda_impl::multiply<T, D>(a, b, c, accumulate);
    if (e != nullptr) e->run();
  }

 private:
  template <class T>
  static bool multiply_with_tail(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                                 const epilogue& e) {
    using cuda_impl::product_tail;
    product_tail tail = e.tail(c.columns);
    if (tail.empty()) return false;
    if (e.kept != nullptr && tail.act != product_tail::activation::none) {
      const storage_ptr kept = device_runtime<D>::allocate(tail.kept_bytes(c.rows, c.columns, sizeof(T)));
      tail.kept = kept->data;
      if (cuda_impl::multiply_by_blas<T, D>(a, b, c, accumulate, tail)) {
        *e.kept = kept;
        return true;
      }
      tail.kept = nullptr;
    }
    return !e.must_keep && cuda_impl::multiply_by_blas<T, D>(a, b, c, accumulate, tail);
  }
  /// The values of an expression without points, over its own shape.
  template <class Op, class E, class T, auto S, class Put>
  static void run_rows(const Op& op, index_t n, const E& e, const tensor<T, S, D>& to,
                       const tensor<compute_type<T>, 1, D>& saved, const Put& put) {
    if (to.numel() == 0) return;
    const cuda_impl::rows_body<Op, source_for<E>, T, Put> body(source_of(e), op, put, access::data(saved),
                                                               to.numel() / n, n);
    cuda_impl::launch_on<D>({Op::name, to.shape()}, body, body.launch());
  }
  template <class E>
  using source_for = cuda_impl::element_source<lowered<false, E>, cuda_impl::outer_axes_of(E::rank)>;
  template <class E>
  static source_for<E> source_of(const E& e) {
    const leaves_of<E> leaves(e);
    return cuda_impl::make_source<E::rank>(
        lower<false>(e), cuda_impl::axes_of<source_for<E>::leaves>({e.shape().data(), E::rank}, leaves));
  }

  template <class T, int R>
  static cuda_impl::gather_lines<R> lines_of(const tensor<T, R, D>& x, int axis,
                                             const tensor<std::int64_t, R, D>& index, const tensor<T, R, D>& y) {
    cuda_impl::pass_axes axes(3);
    axes.rank = R;  // the others in order, then an inner axis of one element
    for (int d = 0, to = 0; d < R; ++d) {
      if (d == axis) continue;
      axes.shape[to] = index.shape()[d];
      axes.strides[0][to] = x.strides()[d];
      axes.strides[1][to] = index.strides()[d];
      axes.strides[2][to] = y.strides()[d];
      ++to;
    }
    axes.shape[R - 1] = 1;
    axes.data[0] = reinterpret_cast<char*>(access::data(x));
    axes.data[1] = reinterpret_cast<char*>(access::data(index));
    axes.data[2] = reinterpret_cast<char*>(access::data(y));
    constexpr int outer = cuda_impl::outer_axes_of(R);
    return {axes.space<outer>(),
            axes.table<3, outer>(0),
            index.shape()[axis],
            x.shape()[axis],
            {x.strides()[axis], index.strides()[axis], y.strides()[axis]}};
  }
};

static_assert(is_backend<backend<cuda<0>>, cuda<0>>);

}  // namespace sinter::detail

// sinter/ops/linear_cross_entropy.hpp: the cross-entropy of a linear layer's scores, of which few are in memory at
// once.
#pragma once

#include "sinter/math/scalar.hpp"
#include "sinter/ops/cross_entropy.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/weighted_cross_entropy.hpp"

namespace sinter {

template <class...>
struct inputs_weights_and_targets_with_elements_of_type;
template <int...>
struct inputs_weights_and_targets_of_ranks;
struct use_one_floating_point_type_and_integer_targets;
struct use_weights_of_rank_2_a_bias_of_rank_1_and_targets_of_the_shape_of_the_inputs_without_the_last_axis;

/// What linear_cross_entropy takes into account.
///
///     linear_cross_entropy(x, w, b, targets, {.label_smoothing = 0.1, .recompute = true});
struct linear_cross_entropy_options {
  index_t ignore_index = -100;  ///< a target that counts as no sample
  double label_smoothing = 0;   ///< the part of a target that all classes share, in [0, 1]
  double z_loss = 0;            ///< adds z_loss logsumexp(scores)^2 to the loss of each sample
  bool recompute = false;       ///< backward computes the scores again, block by block, in place of keeping them
};

namespace ops {

/// The loss of a row of n scores v against its label, in the words of math/vocabulary.hpp. With lse = logsumexp(v) and
/// the smoothing s it is (1 - s) (lse - v[label]) + s / n sum(lse - v) + z lse^2, and its derivative in v
/// exp(v - lse) (1 + 2 z lse) - s / n, less 1 - s at the label. lse is kept as shift + rest. A row whose label is
/// `ignored` has the loss 0.
///   kernels<class_loss, D>::losses<T>(what, rows, labels, loss, parts)      also keeps shift and rest of each row
///   kernels<class_loss, D>::slopes<T>(what, rows, labels, parts, g, to)     to = g[row] times the derivative; `to` may
///                                                                           be where the scores are
///   kernels<class_loss, D>::check_targets(what, labels, n)                  index_error for a label outside [0, n)
///   kernels<class_loss, D>::mean_factor<T>(what, labels)                    rows / those that count; 0 if none does
struct class_loss {
  template <device D>
  static constexpr bool has_kernels_on = true;

  std::int64_t ignored;
  double smoothing, z_loss;

  /// The scores of rows: those in memory, plus a bias for each class, if there is one.
  template <class T>
  struct rows {
    const T* scores;
    const T* bias;
    index_t count, n;
  };

  SINTER_WORD bool smooths() const { return smoothing != 0; }
  /// `below` is the sum of v - shift where smooths().
  template <class C>
  SINTER_WORD C loss(C shift, C rest, C at_label, C below, index_t n) const {
    C y = rest - (at_label - shift);
    if (smooths()) {
      const C s = static_cast<C>(smoothing);
      y = (C(1) - s) * y + s * (rest - below / static_cast<C>(n));
    }
    if (z_loss != 0) y += static_cast<C>(z_loss) * (shift + rest) * (shift + rest);
    return y;
  }
  /// What exp(v - lse) is multiplied by.
  template <class C>
  SINTER_WORD C factor(C shift, C rest) const {
    return C(1) + C(2) * static_cast<C>(z_loss) * (shift + rest);
  }
  /// What is subtracted from all.
  template <class C>
  SINTER_WORD C share(index_t n) const {
    return static_cast<C>(smoothing / static_cast<double>(n));
  }
  template <class C>
  SINTER_WORD C slope_at_label(C shift, C rest, C at_label, index_t n) const {
    const C e = (at_label - shift) - rest;
    C d = math::expm1(e) + static_cast<C>(smoothing) - share<C>(n);
    if (z_loss != 0) d += math::exp(e) * (factor(shift, rest) - C(1));
    return d;
  }
};

/// What backward asks for: of each row shift and rest, and the scores without bias where they are kept.
template <class T, device D>
struct linear_cross_entropy_saved {
  tensor<compute_type<T>, 1, D> parts;
  tensor<T, 2, D> scores;
};

/// x (N,in), w (C,in), with Biased b (C), labels (N) => the losses (N).
template <bool Biased>
struct linear_cross_entropy_op : kernel_op {
  static constexpr const char* name = "linear_cross_entropy";
  static constexpr unsigned read = uses::first | uses::second | uses::third | (Biased ? uses::fourth : uses::nothing);
  static constexpr unsigned grad_uses[Biased ? 3 : 2] = {read, read};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand < 2 ? take::strided : take::dense; }
  static constexpr int rank(...) { return 1; }
  template <class T, device D>
  using saves = linear_cross_entropy_saved<T, D>;

  class_loss what;
  bool keeps;  ///< the scores, for backward
  linear_cross_entropy_op(const class_loss& of_row, bool keeps_scores) : what(of_row), keeps(keeps_scores) {}

  template <class... More>
  extents<1> shape(const extents<2>& x, const extents<2>&, const More&...) const {
    return {{x[0]}};
  }
  template <class X, class W, class... More>
  static constexpr auto mistake() {
    return sinter::detail::fitting<element_of<X>>{};
  }
};

}  // namespace ops

namespace detail {

/// Of linear_cross_entropy(x, w, b..., targets), the last of which is the first here.
template <class L, class X, class W, class... B>
constexpr auto find_linear_cross_entropy_mistake() {
  if constexpr (!expression<X> || !expression<W> || !(expression<B> && ...) || !expression<L>)
    return no_operands<X, W, B..., L>{};
  else if constexpr (!devices_agree<X, W, B..., L>)
    return mistake<operands_on_different_devices<device_of<X>, device_of<W>, device_of<B>..., device_of<L>>,
                   copy_one_operand_with_dot_to>{};
  else if constexpr (reads_name<X> || reads_name<W> || (reads_name<B> || ...) || reads_name<L>)
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (!floating_element<element_of<X>> || !std::is_same_v<element_of<X>, element_of<W>> ||
                     !(std::is_same_v<element_of<X>, element_of<B>> && ...) || !integer_element<element_of<L>>)
    return mistake<
        inputs_weights_and_targets_with_elements_of_type<element_of<X>, element_of<W>, element_of<B>..., element_of<L>>,
        use_one_floating_point_type_and_integer_targets>{};
  else if constexpr (rank_of<X> < 1 || rank_of<W> != 2 || ((rank_of<B> != 1) || ...) || rank_of<L> != rank_of<X> - 1)
    return mistake<
        inputs_weights_and_targets_of_ranks<rank_of<X>, rank_of<W>, rank_of<B>..., rank_of<L>>,
        use_weights_of_rank_2_a_bias_of_rank_1_and_targets_of_the_shape_of_the_inputs_without_the_last_axis>{};
  else return fitting<element_of<X>>{};
}
template <class L, class X, class W, class... B>
using linear_cross_entropy_mistake =
    decltype(find_linear_cross_entropy_mistake<bare<L>, bare<X>, bare<W>, bare<B>...>());

/// How many rows of scores are in memory at once: enough for a product to be quick, some 16 MiB of floats, not so many
/// that the gradient of the weights would go through memory twice for each block of them, and the same for any number
/// of threads.
inline index_t rows_of_scores_at_once(index_t rows, index_t classes) {
  constexpr index_t wanted = index_t{1} << 22, least = 128, most = 384;
  const index_t fit = classes > 0 ? wanted / classes : most;
  const index_t limit = fit < least ? least : fit > most ? most : fit;
  const index_t blocks = (rows + limit - 1) / limit;
  return blocks > 0 ? (rows + blocks - 1) / blocks : 1;
}

/// A gradient that is a sum of products, of which each block of rows adds one; that of half and bfloat16 is gathered in
/// float.
template <class T, device D>
class sum_of_products {
 public:
  sum_of_products() = default;
  sum_of_products(const gradient_place<tensor<T, 2, D>>& place, index_t blocks)
      : to_(place.to), add_(place.add), several_(blocks > 1) {
    if (blocks == 0 && !add_) write(constant_expr<T>{0}, to_);
  }
  bool wanted() const { return to_.defined(); }
  template <class A, class B>
  void add(const A& x, const B& y) {
    if constexpr (narrow_element<T>) {
      if (several_) return add_wide(x, y);
    }
    multiply_into_gradient(to_, x, y, add_);
    add_ = true;
  }
  void finish() const {
    if constexpr (narrow_element<T>)
      if (sums_.defined()) write_or_add(cast<T>(sums_), to_, add_);
  }

 private:
  template <class A, class B>
  void add_wide(const A& x, const B& y) {
    const auto product = tensor<T, 2, D>::uninitialized(to_.shape());
    multiply_into(x, y, product, false);
    const bool first = !sums_.defined();
    if (first) sums_ = tensor<compute_type<T>, 2, D>::uninitialized(to_.shape());
    write_or_add(cast<compute_type<T>>(product), sums_, !first);
  }

  tensor<T, 2, D> to_;
  tensor<compute_type<T>, 2, D> sums_;
  bool add_ = false, several_ = false;
};

/// The gradients p^T x of the weights and sum(p) of the bias of a layer, to which each block of rows of x (n,in) and p
/// (n,classes) adds. Of several blocks both are one product (x,1)^T p, of which the rows lie as those of p, so that p
/// is read as it is; it is turned round in the end, unless it is so large that a second one would be missed.
template <class T, device D>
class layer_gradients {
  using place = gradient_place<tensor<T, 2, D>>;

 public:
  /// Of places without a tensor nobody asks for the gradient; that of the bias is (1,classes). Up to `most` weights are
  /// turned round.
  layer_gradients(const place& dw, const place& db, index_t blocks, index_t rows, index_t in, index_t classes,
                  index_t most = index_t{1} << 24)
      : dw_(dw), db_(db) {
    const bool has_dw = dw.to.defined(), has_db = db.to.defined();
    const bool turns = has_dw && blocks > 1 && in * classes <= most;
    if (has_db) {
      x_ = tensor<T, 2, D>::uninitialized({{rows, turns ? in + 1 : 1}});
      write(constant_expr<T>{1}, x_);
    }
    if (turns) {
      turned_ = tensor<T, 2, D>::uninitialized({{in + (has_db ? 1 : 0), classes}});
      all_ = sum_of_products<T, D>({turned_, false}, blocks);
    } else {
      if (has_dw) of_weights_ = sum_of_products<T, D>(dw, blocks);
      if (has_db) of_bias_ = sum_of_products<T, D>(db, blocks);
    }
  }
  void add(const tensor<T, 2, D>& x, const tensor<T, 2, D>& p) {
    const index_t n = x.shape()[0], in = x.shape()[1];
    if (of_weights_.wanted()) of_weights_.add(p.transpose(), x);
    if (of_bias_.wanted()) of_bias_.add(x_.slice(0, 0, n).transpose(), p);
    if (!all_.wanted()) return;
    if (!x_.defined()) return all_.add(x.transpose(), p);
    const tensor<T, 2, D> with_ones = x_.slice(0, 0, n);
    write(x, with_ones.slice(1, 0, in));
    all_.add(with_ones.transpose(), p);
  }
  void finish() const {
    of_weights_.finish();
    of_bias_.finish();
    if (!all_.wanted()) return;
    all_.finish();
    const index_t in = dw_.to.shape()[1];
    write_or_add(turned_.slice(0, 0, in).transpose(), dw_.to, dw_.add);
    if (db_.to.defined()) write_or_add(turned_.slice(0, in, in + 1), db_.to, db_.add);
  }

 private:
  place dw_, db_;
  sum_of_products<T, D> of_weights_, of_bias_, all_;
  tensor<T, 2, D> x_, turned_;  ///< x_: a column of ones, for `turned_` behind a block of x
};

/// Products by multiply_into, the work on rows of scores by kernels<ops::class_loss, D>.
template <bool Biased, device D>
struct linear_cross_entropy_kernels {
  using op_type = ops::linear_cross_entropy_op<Biased>;
  using of_rows = kernels<ops::class_loss, D>;
  template <class T>
  using matrix = tensor<T, 2, D>;

  template <class T, class Epilogue, class... More>
  static ops::linear_cross_entropy_saved<T, D> forward(const op_type& op, const tensor<T, 1, D>& loss, const Epilogue*,
                                                       const matrix<T>& x, const matrix<T>& w, const More&... more) {
    const index_t rows = x.shape()[0], classes = w.shape()[0];
    const index_t each = op.keeps ? rows : rows_of_scores_at_once(rows, classes);
    const auto parts = tensor<compute_type<T>, 1, D>::uninitialized({{2 * rows}});
    const auto scores = matrix<T>::uninitialized({{each, classes}});
    for (index_t first = 0; first < rows; first += each) {
      const index_t n = first + each < rows ? each : rows - first;
      multiply_into(x.slice(0, first, first + n), w.transpose(), scores.slice(0, 0, n), false);
      of_rows::template losses<T>(op.what, {access::data(scores), bias_of<T>(more...), n, classes},
                                  labels_of(more...) + first, access::data(loss) + first,
                                  access::data(parts) + 2 * first);
    }
    if (!op.keeps) return {parts, {}};
    return {parts, scores};
  }

  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    using T = element_of<decltype(b.saved.scores)>;
    const matrix<T>&x = b.template operand<0>(), &w = b.template operand<1>();
    const auto& labels = b.template operand<Biased ? 3 : 2>();
    const index_t rows = x.shape()[0], classes = w.shape()[0], each = rows_of_scores_at_once(rows, classes);
    of_rows::check_targets("backward of 'linear_cross_entropy'", op.what, labels, classes);
    const T* bias = nullptr;
    const index_t blocks = (rows + each - 1) / each;
    gradient_place<matrix<T>> dx, dw, db;
    if (b.template wants<0>()) dx = b.template place_of<0>();
    if (b.template wants<1>()) dw = b.template place_of<1>();
    if constexpr (Biased) {
      bias = access::data(b.template operand<2>());
      if (b.template wants<2>()) {
        const auto place = b.template place_of<2>();
        db = {place.to.unsqueeze(0), place.add};
      }
    }
    layer_gradients<T, D> of_layer(dw, db, blocks, each, x.shape()[1], classes);
    const auto slopes = matrix<T>::uninitialized({{each, classes}});
    for (index_t first = 0; first < rows; first += each) {
      const index_t n = first + each < rows ? each : rows - first;
      const matrix<T> of_block = x.slice(0, first, first + n), p = slopes.slice(0, 0, n);
      const T* scores = access::data(p);
      if (b.saved.scores.defined()) scores = access::data(b.saved.scores) + first * classes;
      else multiply_into(of_block, w.transpose(), p, false);
      of_rows::template slopes<T>(op.what, {scores, bias, n, classes}, access::data(labels) + first,
                                  access::data(b.saved.parts) + 2 * first, access::data(b.gradient()) + first,
                                  access::data(p));
      if (dx.to.defined()) multiply_into_gradient(matrix<T>(dx.to.slice(0, first, first + n)), p, w, dx.add);
      of_layer.add(of_block, p);
    }
    of_layer.finish();
  }

 private:
  using indices = tensor<std::int64_t, 1, D>;
  static const std::int64_t* labels_of(const indices& labels) { return access::data(labels); }
  template <class B>
  static const std::int64_t* labels_of(const B&, const indices& labels) {
    return access::data(labels);
  }
  template <class T>
  static const T* bias_of(const indices&) {
    return nullptr;
  }
  template <class T>
  static const T* bias_of(const tensor<T, 1, D>& bias, const indices&) {
    return access::data(bias);
  }
};

template <bool Biased, device D>
struct kernels<ops::linear_cross_entropy_op<Biased>, D> : linear_cross_entropy_kernels<Biased, D> {};

/// The losses of rows, of operands as they are recorded. With and without a bias apart: g++ 12 miscounts a pack between
/// other operands in what nvcc makes of it.
template <class X, class W, class... B>
struct row_losses;
template <class X, class W>
  requires(expression<bare<X>> && expression<bare<W>>)
struct row_losses<X, W> {
  using type =
      kernel_of<ops::linear_cross_entropy_op<false>, evaluated<X>, evaluated<W>, tensor<std::int64_t, 1, device_of<X>>>;
};
template <class X, class W, class B>
  requires(expression<bare<X>> && expression<bare<W>> && expression<bare<B>>)
struct row_losses<X, W, B> {
  using type = kernel_of<ops::linear_cross_entropy_op<true>, evaluated<X>, evaluated<W>, evaluated<B>,
                         tensor<std::int64_t, 1, device_of<X>>>;
};
template <class R, int Rank, class X, class W, class... B>
using linear_cross_entropy_value =
    typename result_of_point<element_of<X>, std::is_same_v<R, reduction::none_t> ? Rank : 0, device_of<X>,
                             row_losses<X, W, B...>::type::order>::type;

/// Errors: shape_error unless x is (...,in), w (C,in), b (C) and the targets have the shape of x without its last axis;
/// value_error for options out of range.
template <int R, class... B>
void check_linear_cross_entropy(const char* op, const linear_cross_entropy_options& o, const extents<R>& x,
                                const extents<2>& w, const extents<R - 1>& targets, const B&... b) {
  bool fits = true;
  for (int d = 0; d < R - 1; ++d) fits = fits && targets[d] == x[d];
  if (!fits)
    refuse<shape_error>({op, ": targets of shape ", targets, " for inputs of shape ", x,
                         "; targets have the shape of the inputs without the last axis"});
  if (w[1] != x[R - 1])
    refuse<shape_error>(
        {op, ": weights of shape ", w, " for inputs of shape ", x, "; they must be (classes,", x[R - 1], ")"});
  [[maybe_unused]] const auto check_bias = [&](const extents<1>& bias) {
    if (bias[0] != w[0])
      refuse<shape_error>({op, ": a bias of shape ", bias, " for ", w[0], " classes; it must be (", w[0], ",)"});
  };
  (check_bias(b), ...);
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    refuse<value_error>({op, ": label_smoothing is ", o.label_smoothing, "; it must be in [0, 1]"});
  if (!(o.z_loss >= 0)) refuse<value_error>({op, ": z_loss is ", o.z_loss, "; it must be 0 or more"});
}

/// Is something recorded of a value made of these?
template <class... A>
bool is_recorded_of(const A&... a) {
  return recording() && (bool(prologue_state(a)) || ...);
}

/// The loss that linear_cross_entropy() gives.
template <class R, class L, class X, class W, class... B>
auto linear_cross_entropy_of(R, const linear_cross_entropy_options& o, const L& targets, X&& x, W&& w, B&&... b) {
  constexpr const char* name = "linear_cross_entropy";
  constexpr int rank = rank_of<L>;
  using T = element_of<X>;
  using D = device_of<X>;
  (check_defined(name, x), check_defined(name, w), (check_defined(name, b), ...), check_defined(name, targets));
  check_linear_cross_entropy(name, o, x.shape(), w.shape(), targets.shape(), b.shape()...);
  const index_t rows = targets.shape().numel(), classes = w.shape()[0];
  const auto labels = int64_labels(targets).reshape({rows});
  const ops::class_loss what{o.ignore_index, o.label_smoothing, o.z_loss};
  kernels<ops::class_loss, D>::check_targets(name, what, labels, classes);
  const auto losses = [&] {
    const auto run = [&](auto in, auto weight, auto... bias) {
      const bool keeps = !o.recompute && is_recorded_of(in, weight, bias...);
      return eval(make_kernel(ops::linear_cross_entropy_op < sizeof...(B) != 0 > (what, keeps), std::move(in),
                              std::move(weight), std::move(bias)..., labels));
    };
    auto in = eval_to_read(std::forward<X>(x));
    if constexpr (rank_of<X> == 2)
      return run(std::move(in), eval_to_read(std::forward<W>(w)), eval_to_read(std::forward<B>(b))...);
    else
      return run(in.reshape({rows, w.shape()[1]}), eval_to_read(std::forward<W>(w)),
                 eval_to_read(std::forward<B>(b))...);
  }();
  if constexpr (std::is_same_v<R, reduction::mean_t>) {
    if (rows == 0) return eval(sum(losses));
    return eval(mean(losses) * kernels<ops::class_loss, D>::template mean_factor<T>(what, labels));
  } else if constexpr (std::is_same_v<R, reduction::sum_t>) return eval(sum(losses));
  else if constexpr (rank == 1) return losses;
  else if constexpr (rank == 0) return losses.select(0, 0);
  else return losses.reshape(targets.shape().values);
}

}  // namespace detail

/// cross_entropy(linear(x, w, b), targets), of which the scores x w^T + b are never differentiated as a tensor of their
/// own: x (...,in), w (C,in), b (C), targets (...) of any integer type => the mean over the targets that are not
/// ignored, 0 where there is none; with reduction::sum the sum, with reduction::none the losses (...). The product
/// writes the scores once, and backward turns a block of rows at a time into their gradient, which both products of
/// backward take from cache; with `recompute` a block of rows is all that there is of the scores, in forward too, for
/// one product more. Where nothing is recorded a block is all in any case. Runs at once. Sums of half and bfloat16 are
/// gathered in float; the same bits for any number of threads. z_loss: A. Chowdhery et al., "PaLM", 2022. Derivative: p
/// = softmax(x w^T + b) - onehot(targets) for each row, times g: dx = p w, dw = p^T x, db = sum of p. Errors:
/// shape_error, value_error for options out of range, index_error for a target outside [0, C) that is not ignored, on a
/// GPU where the host next waits for it.
///
///     variable loss = linear_cross_entropy(h, w, bias, targets);  // (N,256), (10000,256), (10000), (N) => a number
///     variable same = linear_cross_entropy(h, w, bias, targets, {.recompute = true});
template <class X, class W, class B, class L, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::linear_cross_entropy_mistake<L, X, W, B>>)
detail::linear_cross_entropy_value<R, rank_of<L>, X, W, B> linear_cross_entropy(
    X&& x, W&& w, B&& b, const L& targets, const linear_cross_entropy_options& options = {}, R = {}) {
  return detail::linear_cross_entropy_of(R{}, options, targets, std::forward<X>(x), std::forward<W>(w),
                                         std::forward<B>(b));
}
template <class X, class W, class L, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::linear_cross_entropy_mistake<L, X, W>>)
detail::linear_cross_entropy_value<R, rank_of<L>, X, W> linear_cross_entropy(
    X&& x, W&& w, const L& targets, const linear_cross_entropy_options& options = {}, R = {}) {
  return detail::linear_cross_entropy_of(R{}, options, targets, std::forward<X>(x), std::forward<W>(w));
}
/// The same without options: the reduction follows the targets.
template <class X, class W, class B, class L, class R,
          class = std::enable_if_t<detail::loss_reduction<R> &&
                                   detail::is_fitting<detail::linear_cross_entropy_mistake<L, X, W, B>>>>
detail::linear_cross_entropy_value<R, rank_of<L>, X, W, B> linear_cross_entropy(X&& x, W&& w, B&& b, const L& targets,
                                                                                R reduce) {
  return linear_cross_entropy(std::forward<X>(x), std::forward<W>(w), std::forward<B>(b), targets, {}, reduce);
}
template <class X, class W, class L, class R,
          class = std::enable_if_t<detail::loss_reduction<R> &&
                                   detail::is_fitting<detail::linear_cross_entropy_mistake<L, X, W>>>>
detail::linear_cross_entropy_value<R, rank_of<L>, X, W> linear_cross_entropy(X&& x, W&& w, const L& targets, R reduce) {
  return linear_cross_entropy(std::forward<X>(x), std::forward<W>(w), targets, {}, reduce);
}
template <class X, class W, class B, class L, class R = reduction::mean_t,
          class Problem = typename detail::linear_cross_entropy_mistake<L, X, W, B>::problem,
          class Fix = typename detail::linear_cross_entropy_mistake<L, X, W, B>::fix>
  requires(expression<detail::bare<L>>)
void linear_cross_entropy(X&&, W&&, B&&, const L&, const linear_cross_entropy_options& = {}, R = {}) = delete;
template <class X, class W, class L, class R = reduction::mean_t,
          class Problem = typename detail::linear_cross_entropy_mistake<L, X, W>::problem,
          class Fix = typename detail::linear_cross_entropy_mistake<L, X, W>::fix>
void linear_cross_entropy(X&&, W&&, const L&, const linear_cross_entropy_options& = {}, R = {}) = delete;

}  // namespace sinter

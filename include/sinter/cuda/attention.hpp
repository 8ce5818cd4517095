// sinter/cuda/attention.hpp: attention on GPUs.
#pragma once

#include "sinter/cuda/attention_forward.hpp"
#include "sinter/cuda/attention_mask.hpp"

namespace sinter::cuda_impl {

using sinter::detail::access;

template <ops::attention_mask Mask, class Score, class Dropout>
attention_rule<Score, Dropout, void> rule_of(const ops::attention_op<Mask, Score, Dropout>& op,
                                             const ops::attention_extents& e, int) {
  return {{e, op.score, op.dropout, {}, op.options.causal}};
}
/// R: the rank of the queries.
template <ops::attention_mask Mask, class Score, class Dropout, class M, int RM, device D>
attention_rule<Score, Dropout, M> rule_of(const ops::attention_op<Mask, Score, Dropout>& op,
                                          const ops::attention_extents& e, int R, const tensor<M, RM, D>& mask) {
  return {
      {e, op.score, op.dropout, ops::mask_at(access::data(mask), mask.shape(), mask.strides(), R), op.options.causal}};
}

template <device D, class Body, int R>
void run_attention(const char* what, const extents<R>& shape, const Body& body) {
  if (body.tasks() > 0) launch_on<D>({what, shape}, body, {blocks_for(body.tasks()), Body::shared_bytes()});
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <ops::attention_mask Mask, class Score, class Dropout, device D>
  requires is_cuda_v<D>
struct kernels<ops::attention_op<Mask, Score, Dropout>, D> {
  using op_type = ops::attention_op<Mask, Score, Dropout>;
  using asked = attention_gradients<Mask>;

  template <class T, int R, class Epilogue, class... M>
  static tensor<compute_type<T>, 1, D> forward(const op_type& op, const tensor<T, R, D>& y, const Epilogue*,
                                               const tensor<T, R, D>& q, const tensor<T, R, D>& k,
                                               const tensor<T, R, D>& v, const M&... mask) {
    using C = compute_type<T>;
    const ops::attention_extents e = op.extents_of(q.shape(), k.shape(), v.shape()[R - 1]);
    const auto saved = tensor<C, 1, D>::uninitialized({{2 * e.batch * e.heads * e.queries}});
    const auto rule = cuda_impl::rule_of(op, e, R, mask...);
    using ops::const_heads_in, ops::heads_in;
    cuda_impl::run_attention<D>("attention", y.shape(),
                                cuda_impl::attention_body<T, bare<decltype(rule)>>{
                                    rule, const_heads_in(q), const_heads_in(k), const_heads_in(v), heads_in(y),
                                    access::data(saved), static_cast<C>(op.scale(e))});
    return saved;
  }

  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    if constexpr (Mask == ops::attention_mask::none) reverse_with(op, b);
    else reverse_with(op, b, b.template operand<3>());
  }

 private:
  template <class Backward, class... M>
  static void reverse_with(const op_type& op, const Backward& b, const M&... mask) {
    const auto& q = b.template operand<0>();
    const auto& k = b.template operand<1>();
    using T = element_of<decltype(q)>;
    using C = compute_type<T>;
    constexpr int R = rank_of<decltype(q)>;
    const ops::attention_extents e = op.extents_of(q.shape(), k.shape(), b.gradient().shape()[R - 1]);
    const auto rule = cuda_impl::rule_of(op, e, R, mask...);
    using Rule = bare<decltype(rule)>;
    using ops::const_heads_in;
    const bool of_scores = asked::wants_scores(b);
    const temporary<D> memory(static_cast<std::size_t>(of_scores ? e.batch * e.heads * e.queries : 0) * sizeof(C));
    C* const means = static_cast<C*>(memory.data());
    ops::heads_of<const T> read_v{};  // not kept where its own gradient alone is asked for
    if (of_scores) read_v = const_heads_in(b.template operand<2>());
    const cuda_impl::attention_reverse<T, Rule> reads{rule,
                                                      const_heads_in(q),
                                                      const_heads_in(k),
                                                      read_v,
                                                      const_heads_in(b.result()),
                                                      const_heads_in(b.gradient()),
                                                      access::data(b.saved),
                                                      means,
                                                      static_cast<C>(op.scale(e))};
    const auto shape = b.gradient().shape();
    if (of_scores) {
      const cuda_impl::attention_means_body<T> body{reads.y, reads.g, e, means};
      if (body.rows() > 0)
        cuda_impl::launch_on<D>(
            {"means of attention's gradient", shape}, body,
            {cuda_impl::blocks_for(body.rows(), body.rows_at_once), sizeof(C) * std::size_t{cuda_impl::block_threads}});
    }
    cuda_impl::run_attention<D>("gradient of attention", shape,
                                cuda_impl::attention_gradients_body<T, Rule>{reads, asked::template gradient<0, T>(b),
                                                                             asked::template gradient<1, T>(b),
                                                                             asked::template gradient<2, T>(b)});
    if constexpr (Mask == ops::attention_mask::additive)
      if (asked::wants_mask(b)) run_mask(b, reads);
  }

  template <class Backward, class T, class Rule>
  static void run_mask(const Backward& b, const cuda_impl::attention_reverse<T, Rule>& reads) {
    using C = compute_type<T>;
    const ops::attention_extents& e = reads.rule.e;
    const auto& shape = b.template operand<3>().shape();
    const cuda_impl::attention_mask_gradient<T> mask{
        asked::template mask_gradient<rank_of<decltype(b.gradient())>, T>(b)};
    const temporary<D> memory(static_cast<std::size_t>(mask.of_scores() ? 0 : e.batch * e.heads * mask.rows(e)) *
                              sizeof(C));
    C* const sums = static_cast<C*>(memory.data());
    cuda_impl::run_attention<D>("gradient of attention's mask", shape,
                                cuda_impl::attention_mask_gradient_body<T, Rule>{reads, mask, sums});
    const cuda_impl::attention_mask_sums_body<T> body{mask, e, sums};
    if (!mask.of_scores()) cuda_impl::launch_each<D>({"gradient of attention's mask", shape}, body);
  }
};

}  // namespace sinter::detail

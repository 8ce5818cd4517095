// sinter/cpu/attention.hpp: attention on the host devices.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/detail/attention_backward.hpp"
#include "sinter/cpu/detail/attention_few.hpp"
#include "sinter/cpu/detail/attention_forward.hpp"
#include "sinter/cpu/detail/attention_mask_backward.hpp"

namespace sinter::cpu_impl {

template <ops::attention_mask Mask, class Score, class Dropout>
detail::score_rule<Score, Dropout, void> attention_rule(const ops::attention_op<Mask, Score, Dropout>& op,
                                                        const ops::attention_extents& e, int) {
  return {{e, op.score, op.dropout, {}, op.options.causal}};
}
/// R: the rank of the queries.
template <ops::attention_mask Mask, class Score, class Dropout, class M, int RM, device D>
detail::score_rule<Score, Dropout, M> attention_rule(const ops::attention_op<Mask, Score, Dropout>& op,
                                                     const ops::attention_extents& e, int R,
                                                     const tensor<M, RM, D>& mask) {
  return {{e, op.score, op.dropout, ops::mask_at(mask.data(), mask.shape(), mask.strides(), R), op.options.causal}};
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <ops::attention_mask Mask, class Score, class Dropout, device D>
  requires is_cpu_v<D>
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
    if (y.numel() == 0) {  // as rows that see nothing
      for (index_t i = 0; i < saved.numel(); ++i)
        saved.data()[i] = i % 2 == 0 ? std::numeric_limits<C>::infinity() : C(0);
      return saved;
    }
    const auto rule = cpu_impl::attention_rule(op, e, R, mask...);
    const auto run = [&]<class Kernel>(std::type_identity<Kernel>) {
      Kernel{
          rule,         ops::const_heads_in(q),      ops::const_heads_in(k), ops::const_heads_in(v), ops::heads_in(y),
          saved.data(), static_cast<C>(op.scale(e)), cpu_impl::pool_of<D>()}
          .compute();
    };
    using Rule = bare<decltype(rule)>;
    using few = cpu_impl::detail::attention_of_few<T, Rule>;
    if (few::suits(e)) run(std::type_identity<few>());
    else run(std::type_identity<cpu_impl::detail::attention_forward<T, Rule>>());
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
    const auto rule = cpu_impl::attention_rule(op, e, R, mask...);
    using ops::const_heads_in, ops::heads_of, cpu_impl::pool_of;
    heads_of<const T> read_v{};  // not kept where its own gradient alone is asked for
    if (asked::wants_scores(b)) read_v = const_heads_in(b.template operand<2>());
    const auto read_q = const_heads_in(q), read_k = const_heads_in(k), read_y = const_heads_in(b.result()),
               read_g = const_heads_in(b.gradient());
    const C scale = static_cast<C>(op.scale(e));
    using Rule = bare<decltype(rule)>;
    if (b.template wants<0>() || b.template wants<1>() || b.template wants<2>())
      cpu_impl::detail::attention_backward<T, Rule>{rule,
                                                    read_q,
                                                    read_k,
                                                    read_v,
                                                    read_y,
                                                    read_g,
                                                    b.saved.data(),
                                                    asked::template gradient<0, T>(b),
                                                    asked::template gradient<1, T>(b),
                                                    asked::template gradient<2, T>(b),
                                                    scale,
                                                    pool_of<D>()}
          .compute();
    if constexpr (Mask == ops::attention_mask::additive)
      if (asked::wants_mask(b))
        cpu_impl::detail::attention_mask_backward<T, Rule>{
            {rule, read_q, read_k, read_v, read_y, read_g, b.saved.data(), {}, {}, {}, scale, pool_of<D>()},
            asked::template mask_gradient<R, T>(b)}
            .compute();
  }
};

}  // namespace sinter::detail

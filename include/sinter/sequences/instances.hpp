// sinter/sequences/instances.hpp: recurrent layers, attention, layers of transformers and the loss over many classes,
// of floats on the cpu, which a program with sinter::compiled holds once; see expr/stock.hpp.
#pragma once

#include "sinter/cpu/attention.hpp"
#include "sinter/cpu/linear_cross_entropy.hpp"
#include "sinter/cpu/recurrent.hpp"
#include "sinter/cpu/stock.hpp"
#include "sinter/random/attention_dropout.hpp"
#include "sinter/sequences/recurrent.hpp"
#include "sinter/sequences/transformer.hpp"

#if SINTER_COMPILED
#if SINTER_STOCK_PART == 7 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_FUNCTION template
#else
#define SINTER_STOCK_FUNCTION extern template
#endif
namespace sinter::nn::detail {

#define SINTER_STOCK_TABLE(X, recurrence)                                                                       \
  SINTER_STOCK_FUNCTION recurrent_run<X<2>, X<3>> run_layers<recurrence>(                                       \
      const std::vector<recurrent_weights<X<2>, X<1>>>&, X<2>, const sequence_steps&, const X<3>&, const X<3>&, \
      const recurrent_options&, bool, generator&);
template <int R>
using stock_plain = tensor<float, R>;
template <int R>
using stock_tracked = variable<float, R>;
SINTER_STOCK_TABLE(stock_plain, lstm_recurrence)
SINTER_STOCK_TABLE(stock_tracked, lstm_recurrence)
SINTER_STOCK_TABLE(stock_plain, gru_recurrence)
SINTER_STOCK_TABLE(stock_tracked, gru_recurrence)
SINTER_STOCK_TABLE(stock_plain, rnn_recurrence)
SINTER_STOCK_TABLE(stock_tracked, rnn_recurrence)
#undef SINTER_STOCK_TABLE

}  // namespace sinter::nn::detail
namespace sinter::nn {

#define SINTER_STOCK_TABLE(X, Kind)                                                                                 \
  SINTER_STOCK_FUNCTION X<3> multihead_attention<float, cpu, Kind>::attended(const X<4>&, const X<4>&, const X<4>&, \
                                                                             bool) const;                           \
  SINTER_STOCK_FUNCTION X<3> multihead_attention<float, cpu, Kind>::attended(const X<4>&, const X<4>&, const X<4>&, \
                                                                             bool, const tensor<bool, 4>&) const;   \
  SINTER_STOCK_FUNCTION X<3> transformer_encoder_layer<float, cpu, Kind>::run(const X<3>&, const no_mask_t&) const; \
  SINTER_STOCK_FUNCTION X<3> transformer_encoder_layer<float, cpu, Kind>::run(const X<3>&, const tensor<bool, 4>&)  \
      const;                                                                                                        \
  SINTER_STOCK_FUNCTION X<3> transformer_decoder_layer<float, cpu, Kind>::run(                                      \
      const X<3>&, const X<3>&, const no_mask_t&, const no_mask_t&) const;
SINTER_STOCK_TABLE(detail::stock_plain, plain)
SINTER_STOCK_TABLE(detail::stock_tracked, tracked)
#undef SINTER_STOCK_TABLE

}  // namespace sinter::nn
#undef SINTER_STOCK_FUNCTION

#if SINTER_STOCK_PART == 7 || SINTER_STOCK_PART < 0
#define SINTER_STOCK_LINE SINTER_STOCK_MADE
#else
#define SINTER_STOCK_LINE SINTER_STOCK
#endif
namespace sinter::detail {

#define SINTER_STOCK_TABLE(X, W)                                                                 \
  SINTER_STOCK_LINE(kernel_expr<ops::linear_cross_entropy_op<false>, X<2>, W<2>, stock::labels>) \
  SINTER_STOCK_LINE(kernel_expr<ops::linear_cross_entropy_op<true>, X<2>, W<2>, W<1>, stock::labels>)
SINTER_STOCK_TABLE(stock::plain, stock::plain)
SINTER_STOCK_TABLE(stock::plain, stock::tracked)
SINTER_STOCK_TABLE(stock::tracked, stock::tracked)
#undef SINTER_STOCK_TABLE
#define SINTER_STOCK_TABLE(X)                                                                    \
  SINTER_STOCK_LINE(kernel_expr<ops::attention_op<ops::attention_mask::none>, X<4>, X<4>, X<4>>) \
  SINTER_STOCK_LINE(stock::product<stock::reduction<ops::mean_op, 1, 0, X<1>>, stock::number>)
SINTER_STOCK_TABLE(stock::plain)
SINTER_STOCK_TABLE(stock::tracked)
#undef SINTER_STOCK_TABLE
SINTER_STOCK_LINE(
    kernel_expr<dropping_attention<stock::tracked<4>>, stock::tracked<4>, stock::tracked<4>, stock::tracked<4>>)

}  // namespace sinter::detail
#undef SINTER_STOCK_LINE
#endif

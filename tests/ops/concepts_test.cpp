// tests/ops/concepts_test.cpp: the library's own ops, rules, modules and backends are what its concepts ask for.
// Headers do not say it themselves: every file that reads them would pay for it.
#define SINTER_CHECKS_OWN_OPS 1
#define SINTER_WITH_PARALLEL 1
#define SINTER_WITH_SEQUENCES 1
#include <sinter/sinter.hpp>

namespace sinter {

namespace ops {

template <class... Op>
inline constexpr bool are_elementwise = (is_elementwise_op<Op> && ...);
static_assert(are_elementwise<cast_op<float, int>, celu_op<float>, elu_op<float>, hardshrink_op<float>,
                              hardtanh_op<float>, leaky_relu_op<float>, limited_logit_op<float>, nan_to_num_op<float>,
                              power_op<float>, prelu_op, round_decimals_op<float>, shrink_op<float>, softplus_op<float>,
                              softshrink_op<float>, threshold_op<float>, where_op>);
template <class... Op>
inline constexpr bool are_kernels = (is_kernel_op<Op> && ...);
static_assert(are_kernels<attention_op<attention_mask::none>, avg_pool_op<2, sliding_window<2>>, conv_op<2, true>,
                          conv_transpose_op<2, true>, cross_entropy_op, embedding_bag_op, embedding_op, fold_op,
                          gather_op, grid_sample_op, gru_op, interpolate_op, lstm_op, max_pool_op<2, sliding_window<2>>,
                          pad_op<float>, projected_lstm_op, rnn_op, roi_align_op, rotary_op,
                          scatter_op<scatter_rule::add>, search_op, unfold_op, weighted_embedding_bag_op>);
static_assert(is_row_op<layer_norm_op> && is_row_op<log_softmax_op> && is_row_op<rms_norm_op> && is_row_op<softmax_op>);
static_assert(is_score<plain_score> && is_score<sinter::sliding_window> && is_score<nn::alibi>);

}  // namespace ops

namespace optim::detail {
template <class... Rule>
inline constexpr bool are_rules = (optimizer_rule<Rule> && ...);
static_assert(are_rules<adadelta_rule, adagrad_rule, adam_rule<adam_options, false>, adamax_rule, lamb_rule, lion_rule,
                        muon_rule, nadam_rule, radam_rule, rmsprop_rule, sgd_rule>);
}  // namespace optim::detail

namespace nn {
template <class... M>
inline constexpr bool are_modules = (is_module<M> && ...);
static_assert(are_modules<linear<>, bilinear<>, conv2d<>, conv_transpose2d<>, embedding<>, embedding_bag<>, prelu<>>);
static_assert(are_modules<batch_norm2d<>, group_norm<>, instance_norm<>, layer_norm<>, rms_norm<>>);
static_assert(are_modules<relu, leaky_relu, flatten, dropout<>, dropout2d<>, max_pool2d, avg_pool1d,
                          adaptive_avg_pool2d, zero_pad2d, constant_pad2d, upsample, pixel_shuffle, unfold, fold>);
static_assert(are_modules<multihead_attention<>, transformer_encoder<>, transformer_decoder<>, transformer<>>);
static_assert(are_modules<any_module<float, 2>, transfer<numa<0>, cpu>, sequential<transfer<numa<0>, cpu>>,
                          pipeline<sequential<transfer<cpu, cpu>>>>);
}  // namespace nn

namespace cpu_impl {
static_assert(sinter::detail::is_backend<sinter::detail::backend<cpu>, cpu>);
static_assert(ops::is_forward_row<row<float>> && ops::is_reverse_row<reverse_row<float>>);
}  // namespace cpu_impl

}  // namespace sinter

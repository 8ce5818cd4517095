// sinter/nn/other_names.hpp: names of torch.nn that go by another one here.
#pragma once

#include "sinter/core/concepts.hpp"

namespace sinter::nn {

/// The functions of torch.nn.functional are those of this library.
///
///     tensor y = nn::functional::relu(x);
namespace functional {
using namespace ::sinter;
}

// Names in messages.
struct write_nn_batch_norm1d_2d_or_3d;
struct write_nn_instance_norm;
struct write_nn_linear;
struct write_nn_conv2d;
struct write_nn_relu;
struct write_nn_dropout;
struct write_nn_sequential;
struct write_nn_embedding;
struct write_nn_layer_norm;
struct write_nn_max_pool2d;
struct write_nn_flatten;
struct call_the_function_cross_entropy;
struct call_the_function_mse_loss;
struct write_it_in_lower_case_as_in_nn_batch_norm2d;
struct call_the_function_of_that_loss_as_in_mse_loss;
struct write_a_module_with_members_or_nn_module_list;
struct call_unflatten_of_the_tensor;

#define SINTER_LOSS_NAMED_OTHERWISE(name, fix)                                               \
  struct name {                                                                              \
    template <class... A, class Problem = sinter::name_of_pytorch_or_numpy, class Fix = fix> \
    explicit name(A&&...) = delete;                                                          \
    template <class Problem = sinter::name_of_pytorch_or_numpy, class Fix = fix>             \
    explicit name(const sinter::detail::loss_in_braces&) = delete;                           \
  };

SINTER_CLASS_NAMED_OTHERWISE(batchnorm1d, write_nn_batch_norm1d_2d_or_3d)
SINTER_CLASS_NAMED_OTHERWISE(batchnorm2d, write_nn_batch_norm1d_2d_or_3d)
SINTER_CLASS_NAMED_OTHERWISE(BatchNorm1d, write_nn_batch_norm1d_2d_or_3d)
SINTER_CLASS_NAMED_OTHERWISE(BatchNorm2d, write_nn_batch_norm1d_2d_or_3d)
SINTER_CLASS_NAMED_OTHERWISE(instance_norm1d, write_nn_instance_norm)
SINTER_CLASS_NAMED_OTHERWISE(instance_norm2d, write_nn_instance_norm)
SINTER_CLASS_NAMED_OTHERWISE(Linear, write_nn_linear)
SINTER_CLASS_NAMED_OTHERWISE(Conv2d, write_nn_conv2d)
SINTER_CLASS_NAMED_OTHERWISE(ReLU, write_nn_relu)
SINTER_CLASS_NAMED_OTHERWISE(Dropout, write_nn_dropout)
SINTER_CLASS_NAMED_OTHERWISE(Sequential, write_nn_sequential)
SINTER_CLASS_NAMED_OTHERWISE(Embedding, write_nn_embedding)
SINTER_CLASS_NAMED_OTHERWISE(LayerNorm, write_nn_layer_norm)
SINTER_CLASS_NAMED_OTHERWISE(MaxPool2d, write_nn_max_pool2d)
SINTER_CLASS_NAMED_OTHERWISE(Flatten, write_nn_flatten)
SINTER_CLASS_NAMED_OTHERWISE(Conv1d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Conv3d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(ConvTranspose2d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(BatchNorm3d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(GroupNorm, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(InstanceNorm2d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Softmax, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(LogSoftmax, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Sigmoid, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Tanh, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(GELU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(SiLU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(LeakyReLU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(ELU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(PReLU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(AvgPool2d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(AdaptiveAvgPool2d, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Identity, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(LSTM, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(GRU, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(RNN, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(MultiheadAttention, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(TransformerEncoderLayer, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(TransformerEncoder, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Bilinear, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Upsample, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(ModuleList, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_CLASS_NAMED_OTHERWISE(Parameter, write_it_in_lower_case_as_in_nn_batch_norm2d)
SINTER_LOSS_NAMED_OTHERWISE(cross_entropy_loss, call_the_function_cross_entropy)
SINTER_LOSS_NAMED_OTHERWISE(CrossEntropyLoss, call_the_function_cross_entropy)
SINTER_LOSS_NAMED_OTHERWISE(MSELoss, call_the_function_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(BCELoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(BCEWithLogitsLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(NLLLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(L1Loss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(SmoothL1Loss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(HuberLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(KLDivLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(CTCLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(bce_with_logits_loss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(TripletMarginLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(CosineEmbeddingLoss, call_the_function_of_that_loss_as_in_mse_loss)
SINTER_LOSS_NAMED_OTHERWISE(MarginRankingLoss, call_the_function_of_that_loss_as_in_mse_loss)
#undef SINTER_LOSS_NAMED_OTHERWISE
template <class M, class Problem = sinter::name_of_pytorch_or_numpy,
          class Fix = write_a_module_with_members_or_nn_module_list>
struct module_dict {
  module_dict() = delete;
};
SINTER_CLASS_NAMED_OTHERWISE(ModuleDict, write_a_module_with_members_or_nn_module_list)
SINTER_CLASS_NAMED_OTHERWISE(lazy_linear, write_nn_linear)
SINTER_CLASS_NAMED_OTHERWISE(unflatten, call_unflatten_of_the_tensor)

}  // namespace sinter::nn

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
struct call_unflatten_of_the_tensor;

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
SINTER_CLASS_NAMED_OTHERWISE(cross_entropy_loss, call_the_function_cross_entropy)
SINTER_CLASS_NAMED_OTHERWISE(CrossEntropyLoss, call_the_function_cross_entropy)
SINTER_CLASS_NAMED_OTHERWISE(MSELoss, call_the_function_mse_loss)
SINTER_CLASS_NAMED_OTHERWISE(unflatten, call_unflatten_of_the_tensor)

}  // namespace sinter::nn

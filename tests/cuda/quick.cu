// tests/cuda/quick.cu: a statement of each kind of kernel, so that a change which nvcc does not take shows within a
// minute.
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using matrix = tensor<float, 2, cuda<0>>;
using leaf = variable<float, 2, cuda<0>>;

/// Elementwise; rows; reductions of rows, columns and everything; a scan; a sort; a matrix product; and backward
/// through them.
void each_kind(const leaf& x, const leaf& w, const variable<float, 1, cuda<0>>& bias) {
  const variable hidden = relu(matmul(x, w) + bias);
  const variable loss = mean(log_softmax(hidden, 1) * hidden);
  loss.backward();
  const matrix total = cumsum(x.value(), 1);
  const tensor<float, 1, cuda<0>> columns = sum(total, 0);
  const auto in_order = sort(columns);
}

/// Convolution, batch norm, pooling, resampling; and backward through them.
void of_images(const variable<float, 4, cuda<0>>& x, const variable<float, 4, cuda<0>>& w,
               const tensor<float, 1, cuda<0>>& running) {
  const auto normal = batch_norm(conv2d(x, w, {.padding = 1}), running, running, {.training = true});
  const variable pooled = max_pool2d(relu(normal), 2);
  const variable loss = mean(interpolate(pooled, {.scale_factor = 2}) * 2);
  loss.backward();
}

/// Depthwise on the host: what nvcc reads there, its compiler for GPUs reads too.
auto of_images_here(const tensor<float, 4>& x, const tensor<float, 4>& w) { return eval(conv2d(x, w, {.groups = 8})); }

/// Replicas on two GPUs, and a part that runs again in backward.
void of_two_gpus(const nn::linear<float, cuda<0>>& layer, const matrix& x) {
  const auto replicas = nn::data_parallel<cuda<0>, cuda<1>>(layer);
  const variable loss = mean(checkpoint(replicas, x));
  loss.backward();
}

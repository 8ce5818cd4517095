// sinter/data/tensor_dataset.hpp: samples that lie in two tensors, along their first axis.
#pragma once

#include "sinter/data/dataset.hpp"

namespace sinter {

// Names in messages.
struct sample_by_its_number;
struct write_gather_or_inputs_and_targets;

/// Sample i is row i of `inputs` and of `targets`, tensors on one host device with equal first extents. Errors:
/// shape_error when these differ.
///
///     tensor_dataset train(images, labels);   // (N, 784) and (N,)
template <class X, class Y>
  requires(detail::is_tensor<X> && detail::is_tensor<Y> && X::rank >= 1 && Y::rank >= 1 && is_cpu_v<device_of<X>> &&
           is_cpu_v<device_of<Y>>)
class tensor_dataset {
 public:
  template <class Problem = operands_on_different_devices<device_of<X>, device_of<Y>>,
            class Fix = copy_one_operand_with_dot_to>
    requires(!same_device<X, Y>)
  tensor_dataset(X inputs, Y targets) = delete;

  tensor_dataset(X inputs, Y targets)
    requires(same_device<X, Y>)
      : inputs_(inputs.contiguous()), targets_(targets.contiguous()) {
    if (!inputs.defined() || !targets.defined())
      throw shape_error("tensor_dataset: an empty (default constructed) tensor");
    if (inputs.shape()[0] != targets.shape()[0])
      detail::refuse<shape_error>({"tensor_dataset: inputs of shape ", inputs.shape(), " and targets of shape ",
                                   targets.shape(), "; their first extents must be equal"});
  }

  template <std::integral I, class Problem = sample_by_its_number, class Fix = write_gather_or_inputs_and_targets>
  void operator[](I) const = delete;

  index_t size() const { return inputs_.shape()[0]; }
  const X& inputs() const { return inputs_; }
  const Y& targets() const { return targets_; }

  batch<X, Y> gather(std::span<const index_t> rows) const {
    return {detail::gather_rows(inputs_, rows), detail::gather_rows(targets_, rows)};
  }

  /// Samples begin, ..., end - 1; shares their memory.
  tensor_dataset slice(index_t begin, index_t end) const {
    return {inputs_.slice(0, begin, end), targets_.slice(0, begin, end)};
  }

 private:
  X inputs_;
  Y targets_;
};

/// Of expressions, which are evaluated.
template <expression X, expression Y>
  requires(!(detail::is_tensor<X> && detail::is_tensor<Y>))
tensor_dataset(const X&, const Y&)
    -> tensor_dataset<tensor<element_of<X>, rank_of<X>, device_of<X>>, tensor<element_of<Y>, rank_of<Y>, device_of<Y>>>;

}  // namespace sinter

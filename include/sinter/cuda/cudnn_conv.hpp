// sinter/cuda/cudnn_conv.hpp: convolutions by cuDNN, where it has an algorithm for them that gives the same bits in
// every run.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <memory>

#include "sinter/cuda/conv_library.hpp"
#include "sinter/cuda/cudnn.hpp"
#include "sinter/ops/matmul_precision.hpp"

namespace sinter::cuda_impl {

using ops::conv_extents;

/// What cuDNN is told of an element type: its name, the type of alpha and beta, which is that of its sums, and the
/// arithmetic.
template <class T>
struct cudnn_element {
  using scalar = compute_type<T>;
  static constexpr cudnnDataType_t type = std::is_same_v<T, double>  ? CUDNN_DATA_DOUBLE
                                          : std::is_same_v<T, float> ? CUDNN_DATA_FLOAT
                                          : std::is_same_v<T, half>  ? CUDNN_DATA_HALF
                                                                     : CUDNN_DATA_BFLOAT16;
  static constexpr cudnnDataType_t sums = std::is_same_v<T, double> ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  /// CUDNN_DEFAULT_MATH rounds floats to TF32.
  static cudnnMathType_t arithmetic() {
    if constexpr (narrow_element<T>) return CUDNN_TENSOR_OP_MATH;
    else if constexpr (std::is_same_v<T, double>) return CUDNN_DEFAULT_MATH;
    else return use_matmul_precision::now() == matmul_precision::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }
};

/// cuDNN's convolutions on a context's stream; one caller at a time. The descriptors of a convolution, and the
/// algorithm that cuDNN's heuristic puts first among those that may be taken, are made once and kept.
class cudnn_convolutions {
  using pass = library_convolution::pass;

 public:
  explicit cudnn_convolutions(context& c) : context_(c) {}
  cudnn_convolutions(const cudnn_convolutions&) = delete;
  cudnn_convolutions& operator=(const cudnn_convolutions&) = delete;

  template <class T>
  bool takes(cudnnHandle_t handle, const library_convolution& asked) {
    const std::lock_guard lock(busy_);
    const use_gpu current(context_.gpu());
    return plan_for<T>(handle, asked).found;
  }

  /// Returns false, with nothing done, if cuDNN refuses after all. It is not asked for this convolution again.
  template <class T>
  bool run(cudnnHandle_t handle, const library_convolution& asked) {
    const auto held = context_.capture().enter("a convolution");
    const std::lock_guard lock(busy_);
    const use_gpu current(context_.gpu());
    plan& way = plan_for<T>(handle, asked);
    if (!way.found) return false;
    // The next work on this stream that takes the same memory runs after this.
    const sinter::detail::block workspace(context_.memory(), way.workspace);
    const typename cudnn_element<T>::scalar one = 1, zero = 0;
    const cudnnStatus_t status = start(handle, way, asked, workspace.data(), &one, asked.add ? &one : &zero, &zero);
    way.found = !refused(status);
    if (!way.found) return false;
    if (status != CUDNN_STATUS_SUCCESS)
      check(status, context_.name() + ": " + library_convolution::name_of(asked.which) + " by cuDNN");
    context_.count_launches();
    return true;
  }

 private:
  using tensor_ptr = owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
  using filter_ptr = owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
  using convolution_ptr = owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;
  using activation_ptr = owned<cudnnActivationDescriptor_t, cudnnDestroyActivationDescriptor>;

  struct plan {
    tensor_ptr image, result, bias;
    filter_ptr weights;
    convolution_ptr convolution;
    activation_ptr activation;
    int algorithm = 0;
    std::size_t workspace = 0;
    bool found = false;
  };
  using key = std::array<index_t, 28>;

  static constexpr std::size_t most_plans = 4096;
  static constexpr std::size_t most_workspace = std::size_t{256} << 20;

  /// True if cuDNN does not do this convolution, which is no error.
  static bool refused(cudnnStatus_t status) {
#if CUDNN_VERSION >= 90000
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ||
           CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM;
#else
    return status == CUDNN_STATUS_NOT_SUPPORTED || status == CUDNN_STATUS_BAD_PARAM;
#endif
  }

  static cudnnStatus_t start(cudnnHandle_t handle, const plan& way, const library_convolution& c, void* workspace,
                             const void* one, const void* beta, const void* zero) {
    switch (c.which) {
      case pass::forward: {
        const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(way.algorithm);
        if (c.has_bias)
          return cudnnConvolutionBiasActivationForward(handle, one, way.image.get(), c.image, way.weights.get(),
                                                       c.weights, way.convolution.get(), algorithm, workspace,
                                                       way.workspace, zero, way.result.get(), c.result, way.bias.get(),
                                                       c.bias, way.activation.get(), way.result.get(), c.result);
        return cudnnConvolutionForward(handle, one, way.image.get(), c.image, way.weights.get(), c.weights,
                                       way.convolution.get(), algorithm, workspace, way.workspace, beta,
                                       way.result.get(), c.result);
      }
      case pass::data:
        return cudnnConvolutionBackwardData(handle, one, way.weights.get(), c.weights, way.result.get(), c.result,
                                            way.convolution.get(),
                                            static_cast<cudnnConvolutionBwdDataAlgo_t>(way.algorithm), workspace,
                                            way.workspace, beta, way.image.get(), c.image);
      case pass::weights:
        break;
    }
    return cudnnConvolutionBackwardFilter(handle, one, way.image.get(), c.image, way.result.get(), c.result,
                                          way.convolution.get(),
                                          static_cast<cudnnConvolutionBwdFilterAlgo_t>(way.algorithm), workspace,
                                          way.workspace, beta, way.weights.get(), c.weights);
  }

  template <class T>
  plan& plan_for(cudnnHandle_t handle, const library_convolution& c) {
    const conv_extents& e = c.e;
    key k{static_cast<index_t>(cudnn_element<T>::type),
          static_cast<index_t>(cudnn_element<T>::arithmetic()),
          static_cast<index_t>(c.which),
          c.has_bias,
          c.relu,
          c.add,
          e.batch,
          e.channels,
          e.filters,
          e.groups};
    std::size_t at = 10;
    for (const auto* numbers : {&e.in, &e.out, &e.kernel, &e.stride, &e.padding, &e.dilation})
      for (const index_t n : *numbers) k[at++] = n;
    if (const auto found = plans_.find(k); found != plans_.end()) return found->second;
    if (plans_.size() >= most_plans) plans_.clear();
    plan way;
    const cudnnStatus_t status = make_plan<T>(handle, c, way);
    if (status != CUDNN_STATUS_SUCCESS && !refused(status))
      check(status, context_.name() + ": planning " + library_convolution::name_of(c.which) + " by cuDNN");
    return plans_.emplace(k, std::move(way)).first->second;
  }

  /// True if the padding is the same on both sides and all numbers fit an int: cuDNN knows no others.
  static bool can_be_said(const conv_extents& e) {
    constexpr index_t limit = std::numeric_limits<int>::max();
    for (int a = 0; a < 3; ++a) {
      const index_t reach = e.dilation[a] * (e.kernel[a] - 1) + 1;
      if ((e.in[a] + 2 * e.padding[a] - reach) / e.stride[a] + 1 != e.out[a]) return false;
    }
    const index_t in = e.in[0] * e.in[1] * e.in[2], out = e.out[0] * e.out[1] * e.out[2];
    return e.batch * e.channels * in < limit && e.batch * e.filters * out < limit;
  }

  template <auto Create, class Pointer>
  static cudnnStatus_t create(Pointer& to) {
    typename Pointer::pointer made = nullptr;
    const cudnnStatus_t status = Create(&made);
    to.reset(made);
    return status;
  }
  /// Of (N, C, spatial axes) with the channels last.
  static cudnnStatus_t describe(tensor_ptr& to, cudnnDataType_t type, int axes, index_t batch, index_t channels,
                                const index_t (&extent)[3]) {
    int shape[5] = {static_cast<int>(batch), static_cast<int>(channels)}, strides[5] = {0, 1};
    index_t stride = channels;
    for (int a = axes - 1; a >= 0; --a) {
      shape[a + 2] = static_cast<int>(extent[a + 3 - axes]);
      strides[a + 2] = static_cast<int>(stride);
      stride *= extent[a + 3 - axes];
    }
    strides[0] = static_cast<int>(stride);
    if (const auto status = create<cudnnCreateTensorDescriptor>(to); status != CUDNN_STATUS_SUCCESS) return status;
    return cudnnSetTensorNdDescriptor(to.get(), type, axes + 2, shape, strides);
  }

#define SINTER_RETURN_IF_FAILED(call) \
  if (const cudnnStatus_t status = (call); status != CUDNN_STATUS_SUCCESS) return status

  template <class T>
  cudnnStatus_t make_plan(cudnnHandle_t handle, const library_convolution& c, plan& way) const {
    const conv_extents& e = c.e;
    if (!can_be_said(e)) return CUDNN_STATUS_SUCCESS;
    constexpr cudnnDataType_t type = cudnn_element<T>::type;
    const int axes = e.in[0] * e.out[0] * e.kernel[0] == 1 && e.padding[0] == 0 ? 2 : 3, skip = 3 - axes;
    SINTER_RETURN_IF_FAILED(describe(way.image, type, axes, e.batch, e.channels, e.in));
    SINTER_RETURN_IF_FAILED(describe(way.result, type, axes, e.batch, e.filters, e.out));
    int weights[5] = {static_cast<int>(e.filters), static_cast<int>(e.channels / e.groups)};
    int padding[3], stride[3], dilation[3];
    for (int a = 0; a < axes; ++a) {
      weights[a + 2] = static_cast<int>(e.kernel[a + skip]);
      padding[a] = static_cast<int>(e.padding[a + skip]);
      stride[a] = static_cast<int>(e.stride[a + skip]);
      dilation[a] = static_cast<int>(e.dilation[a + skip]);
    }
    SINTER_RETURN_IF_FAILED(create<cudnnCreateFilterDescriptor>(way.weights));
    SINTER_RETURN_IF_FAILED(cudnnSetFilterNdDescriptor(way.weights.get(), type, CUDNN_TENSOR_NHWC, axes + 2, weights));
    SINTER_RETURN_IF_FAILED(create<cudnnCreateConvolutionDescriptor>(way.convolution));
    const cudnnConvolutionDescriptor_t convolution = way.convolution.get();
    SINTER_RETURN_IF_FAILED(cudnnSetConvolutionNdDescriptor(convolution, axes, padding, stride, dilation,
                                                            CUDNN_CROSS_CORRELATION, cudnn_element<T>::sums));
    SINTER_RETURN_IF_FAILED(cudnnSetConvolutionGroupCount(convolution, static_cast<int>(e.groups)));
    SINTER_RETURN_IF_FAILED(cudnnSetConvolutionMathType(convolution, cudnn_element<T>::arithmetic()));
    if (c.has_bias) {
      SINTER_RETURN_IF_FAILED(describe(way.bias, type, axes, 1, e.filters, {1, 1, 1}));
      SINTER_RETURN_IF_FAILED(create<cudnnCreateActivationDescriptor>(way.activation));
      SINTER_RETURN_IF_FAILED(cudnnSetActivationDescriptor(
          way.activation.get(), c.relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0));
    }
    switch (c.which) {
      case pass::forward:
        return choose<cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardWorkspaceSize>(
            handle, way, c.has_bias ? int{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM} : -1, way.image.get(),
            way.weights.get(), convolution, way.result.get());
      case pass::data:
        return choose<cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataWorkspaceSize>(
            handle, way, -1, way.weights.get(), way.result.get(), convolution, way.image.get());
      case pass::weights:
        break;
    }
    return choose<cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnGetConvolutionBackwardFilterWorkspaceSize>(
        handle, way, -1, way.image.get(), way.result.get(), convolution, way.weights.get());
  }

  /// The type in which a function that asks for algorithms describes one.
  template <class F>
  struct told_by;
  template <class A, class B, class C, class E, class Performance>
  struct told_by<cudnnStatus_t (*)(cudnnHandle_t, A, B, C, E, int, int*, Performance*)> {
    using type = Performance;
  };

  /// The first algorithm of the heuristic that is deterministic and takes no more memory than it may; `only` that one,
  /// unless below 0. The order of descriptors is that of cuDNN's functions.
  template <auto Ask, auto Workspace, class A, class B, class C, class E>
  static cudnnStatus_t choose(cudnnHandle_t handle, plan& way, int only, A a, B b, C c, E e) {
    using performance = typename told_by<decltype(Ask)>::type;
    performance found[16];
    int count = 0;
    SINTER_RETURN_IF_FAILED(Ask(handle, a, b, c, e, 16, &count, found));
    for (int i = 0; i < count; ++i) {
      const performance& p = found[i];
      if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC) continue;
      if (only >= 0 && static_cast<int>(p.algo) != only) continue;
      std::size_t bytes = 0;
      if (Workspace(handle, a, b, c, e, p.algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > most_workspace) continue;
      way.algorithm = static_cast<int>(p.algo);
      way.workspace = bytes;
      way.found = true;
      break;
    }
    return CUDNN_STATUS_SUCCESS;
  }
#undef SINTER_RETURN_IF_FAILED

  context& context_;
  std::mutex busy_;
  std::map<key, plan> plans_;
};

/// cuDNN's convolutions on D, as conv_library.hpp describes such a library.
template <device D>
struct convolutions_by_cudnn {
  template <class T>
  bool takes(const library_convolution& asked) const {
    return all().template takes<T>(native_cudnn<D>(), asked);
  }
  template <class T>
  bool run(const library_convolution& asked) const {
    return all().template run<T>(native_cudnn<D>(), asked);
  }

 private:
  static cudnn_convolutions& all() {
    static cudnn_convolutions& one = *new cudnn_convolutions(context_of<D>());
    return one;
  }
};

}  // namespace sinter::cuda_impl

// tests/cuda/runtime/fake_cudnn.cpp: the functions of cuDNN that Sinter calls, without a GPU; see fake.hpp.
// Convolutions are computed in double, from what the descriptors say.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "fake.hpp"
#include "fake_inside.hpp"

using namespace fake_cuda;

struct cudnnContext {
  int gpu;
  cudaStream_t stream;
};
// All have three spatial axes; the leading ones have one element where there are fewer.
struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  long shape[5] = {1, 1, 1, 1, 1}, strides[5] = {};
  std::size_t extent() const {
    long last = 0;
    for (int d = 0; d < 5; ++d) last += (shape[d] - 1) * strides[d];
    return static_cast<std::size_t>(last) + 1;
  }
};
struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  long shape[5] = {1, 1, 1, 1, 1};
  std::size_t extent() const { return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3] * shape[4]); }
};
struct cudnnConvolutionStruct {
  long padding[3] = {0, 0, 0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, groups = 1;
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  cudnnMathType_t arithmetic = CUDNN_DEFAULT_MATH;
};
struct cudnnActivationStruct {
  cudnnActivationMode_t mode;
};

namespace {

constexpr int known_algorithm = 1, any_order = 3, greedy = 2;

std::size_t size_of(cudnnDataType_t type) { return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2; }
double get(cudnnDataType_t type, const void* p, std::size_t i) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(p)[i];
    case CUDNN_DATA_FLOAT:
      return static_cast<const float*>(p)[i];
    case CUDNN_DATA_HALF:
      return __half2float(static_cast<const __half*>(p)[i]);
    default:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
  }
}
void set(cudnnDataType_t type, void* p, std::size_t i, double x) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(p)[i] = x;
      return;
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(p)[i] = static_cast<float>(x);
      return;
    case CUDNN_DATA_HALF:
      static_cast<__half*>(p)[i] = __double2half(x);
      return;
    default:
      static_cast<__nv_bfloat16*>(p)[i] = __double2bfloat16(x);
  }
}

cudnnStatus_t misuse(const std::string& what) {
  note("cuDNN: " + what);
  return CUDNN_STATUS_EXECUTION_FAILED;
}
template <class F>
cudnnStatus_t call(const char* function, const F& f) {
  std::unique_lock<std::mutex> lock;
  switch (begin_library_call(function, lock)) {
    case CUBLAS_STATUS_SUCCESS:
      return f();
    case CUBLAS_STATUS_ALLOC_FAILED:
      return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return CUDNN_STATUS_NOT_SUPPORTED;
    default:
      return CUDNN_STATUS_EXECUTION_FAILED;
  }
}
template <class Object>
cudnnStatus_t create(const char* function, Object** to) {
  return call(function, [&] {
    ++live_descriptors();
    *to = new Object();
    return CUDNN_STATUS_SUCCESS;
  });
}
template <class Object>
cudnnStatus_t destroy(Object* object) {
  --live_descriptors();
  delete object;
  return CUDNN_STATUS_SUCCESS;
}

struct convolution {
  enum class pass { forward, data, weights };
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct c;

  std::string trouble() const {
    if (x.type != y.type || x.type != w.type) return "element types differ";
    if (c.sums != (x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) return "the type of sums";
    if (x.shape[0] != y.shape[0] || x.shape[1] != w.shape[1] * c.groups || y.shape[1] != w.shape[0] ||
        w.shape[0] % c.groups != 0)
      return "batches, channels or groups that do not fit";
    for (int a = 0; a < 3; ++a)
      if ((x.shape[a + 2] + 2 * c.padding[a] - c.dilation[a] * (w.shape[a + 2] - 1) - 1) / c.stride[a] + 1 !=
          y.shape[a + 2])
        return "results that a convolution of these has not";
    return {};
  }

  /// f(place in x, in w, in y) of all products.
  template <class F>
  void each(const F& f) const {
    const long filters = w.shape[0] / c.groups;
    long o[5] = {};
    for (o[0] = 0; o[0] < y.shape[0]; ++o[0])
      for (o[1] = 0; o[1] < y.shape[1]; ++o[1])
        for (o[2] = 0; o[2] < y.shape[2]; ++o[2])
          for (o[3] = 0; o[3] < y.shape[3]; ++o[3])
            for (o[4] = 0; o[4] < y.shape[4]; ++o[4])
              for (long tap = 0; tap < w.shape[2] * w.shape[3] * w.shape[4]; ++tap) {
                const long k[3] = {tap / w.shape[4] / w.shape[3], tap / w.shape[4] % w.shape[3], tap % w.shape[4]};
                long in = o[0] * x.strides[0], out = 0;
                bool inside = true;
                for (int a = 0; a < 3; ++a) {
                  const long at = o[a + 2] * c.stride[a] + k[a] * c.dilation[a] - c.padding[a];
                  inside = inside && at >= 0 && at < x.shape[a + 2];
                  in += at * x.strides[a + 2];
                }
                if (!inside) continue;
                for (int d = 0; d < 5; ++d) out += o[d] * y.strides[d];
                for (long j = 0; j < w.shape[1]; ++j)  // filters are (F, taps, C / groups)
                  f(static_cast<std::size_t>(in + (o[1] / filters * w.shape[1] + j) * x.strides[1]),
                    static_cast<std::size_t>((o[1] * (w.shape[2] * w.shape[3] * w.shape[4]) + tap) * w.shape[1] + j),
                    static_cast<std::size_t>(out));
              }
  }

  /// As the arithmetic sees it: CUDNN_DEFAULT_MATH rounds floats to TF32.
  double factor(const void* p, std::size_t i) const {
    const double v = get(x.type, p, i);
    if (x.type != CUDNN_DATA_FLOAT || c.arithmetic != CUDNN_DEFAULT_MATH) return v;
    auto f = static_cast<float>(v);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &f, sizeof f);
    bits = (bits + 0x1000) & ~std::uint32_t{0x1FFF};
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }

  void run(pass which, void* at_x, void* at_w, void* at_y, bool add, const void* bias, bool relu) const {
    void* const to = which == pass::forward ? at_y : which == pass::data ? at_x : at_w;
    std::vector<double> sums(which == pass::forward ? y.extent() : which == pass::data ? x.extent() : w.extent());
    each([&](std::size_t i, std::size_t j, std::size_t k) {
      if (which == pass::forward) sums[k] += factor(at_x, i) * factor(at_w, j);
      else if (which == pass::data) sums[i] += factor(at_y, k) * factor(at_w, j);
      else sums[j] += factor(at_x, i) * factor(at_y, k);
    });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      double sum = sums[i] + (add ? get(x.type, to, i) : 0);
      if (bias != nullptr) sum += get(x.type, bias, i % static_cast<std::size_t>(y.shape[1]));  // channels last
      set(x.type, to, i, relu && sum < 0 ? 0 : sum);
    }
  }
};

/// The first is not deterministic, and the second wants too much memory. The third fits, unless the test has none fit.
template <class Performance>
cudnnStatus_t offer(const char* function, const convolution& c, int asked, int* found, Performance* to) {
  return call(function, [&] {
    if (const std::string why = c.trouble(); !why.empty()) return misuse(function + (": " + why));
    if (asked < 3) return misuse("few algorithms are asked for");
    *found = 3;
    const int algorithms[] = {any_order, greedy, known_algorithm};
    for (int i = 0; i < 3; ++i) {
      to[i] = {};
      to[i].algo = static_cast<decltype(to[i].algo)>(algorithms[i]);
      to[i].status = CUDNN_STATUS_SUCCESS;
      to[i].determinism =
          algorithms[i] == any_order || !settings().deterministic ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    }
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t workspace_of(const char* function, int algorithm, std::size_t* bytes) {
  return call(function, [&] {
    *bytes = algorithm == greedy ? std::size_t{1} << 40 : settings().workspace;
    return CUDNN_STATUS_SUCCESS;
  });
}

struct asked_run {
  cudnnHandle_t handle;
  int algorithm;
  void* workspace;
  std::size_t bytes;
  const void *alpha, *beta;
};
cudnnStatus_t start(const char* function, const asked_run& r, const convolution& c, convolution::pass which,
                    const void* x, const void* w, const void* y, const void* bias = nullptr, bool relu = false) {
  return call(function, [&] {
    if (const std::string why = c.trouble(); !why.empty()) return misuse(function + (": " + why));
    if (r.algorithm != known_algorithm) return misuse("an algorithm that adds up in any order, or takes much memory");
    const int gpu = r.handle->gpu;
    if (gpu != current_gpu()) return misuse("the handle belongs to GPU " + std::to_string(gpu));
    if (r.bytes < settings().workspace || (r.bytes > 0 && !trouble(r.workspace, r.bytes, gpu).empty()))
      return misuse("the workspace");
    const std::size_t size = size_of(c.x.type);
    const std::pair<const void*, std::size_t> operands[] = {
        {x, c.x.extent()}, {w, c.w.extent()}, {y, c.y.extent()}, {bias, static_cast<std::size_t>(c.y.shape[1])}};
    for (const auto& [data, elements] : operands) {
      if (data == nullptr && &data == &operands[3].first) continue;
      if (reinterpret_cast<std::uintptr_t>(data) % 16 != 0) return misuse("an alignment");
      if (const std::string why = trouble(data, elements * size, gpu); !why.empty()) return misuse(why);
    }
    const bool of_doubles = c.c.sums == CUDNN_DATA_DOUBLE;
    const auto scalar = [&](const void* p) {
      double d = 0;
      float f = 0;
      std::memcpy(of_doubles ? static_cast<void*>(&d) : &f, p, of_doubles ? sizeof d : sizeof f);
      return of_doubles ? d : f;
    };
    if (scalar(r.alpha) != 1) return misuse("alpha is not 1");
    const bool add = scalar(r.beta) == 1;
    const bool put = put_library_work(function, r.handle->stream, [=, c = c] {
      c.run(which, const_cast<void*>(x), const_cast<void*>(w), const_cast<void*>(y), add, bias, relu);
    });
    return put ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  });
}

}  // namespace

extern "C" {

const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of the test"; }
void cudnnGetLastErrorString(char* message, std::size_t) { *message = '\0'; }
std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* to) {
  return call("cudnnCreate", [&] {
    ++live_libraries();
    *to = new cudnnContext{current_gpu(), nullptr};
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --live_libraries();
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return call("cudnnSetStream", [&] {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* to) {
  return create("cudnnCreateTensorDescriptor", to);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int dims, const int shape[],
                                         const int strides[]) {
  return call("cudnnSetTensorNdDescriptor", [&] {
    *d = {};
    d->type = type;
    for (int i = 0; i < dims; ++i) {
      const int at = i < 2 ? i : i + 5 - dims;
      if (shape[i] < 1) return CUDNN_STATUS_BAD_PARAM;
      d->shape[at] = shape[i];
      d->strides[at] = strides[i];
    }
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* to) {
  return create("cudnnCreateFilterDescriptor", to);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int dims, const int shape[]) {
  return call("cudnnSetFilterNdDescriptor", [&] {
    if (format != CUDNN_TENSOR_NHWC) return misuse("filters whose channels are not last");
    *d = {};
    d->type = type;
    for (int i = 0; i < dims; ++i) d->shape[i < 2 ? i : i + 5 - dims] = shape[i];
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* to) {
  return create("cudnnCreateConvolutionDescriptor", to);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int axes, const int padding[],
                                              const int stride[], const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t sums) {
  return call("cudnnSetConvolutionNdDescriptor", [&] {
    if (mode != CUDNN_CROSS_CORRELATION) return misuse("a convolution that turns its weights round");
    *d = {};
    d->sums = sums;
    for (int i = 0; i < axes; ++i) {
      d->padding[i + 3 - axes] = padding[i];
      d->stride[i + 3 - axes] = stride[i];
      d->dilation[i + 3 - axes] = dilation[i];
    }
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  d->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t arithmetic) {
  d->arithmetic = arithmetic;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* to) {
  return create("cudnnCreateActivationDescriptor", to);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d) { return destroy(d); }
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double) {
  d->mode = mode;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                                     cudnnTensorDescriptor_t y, int asked, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* to) {
  return offer("cudnnGetConvolutionForwardAlgorithm_v7", {*x, *y, *w, *c}, asked, found, to);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                          cudnnTensorDescriptor_t x, int asked, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* to) {
  return offer("cudnnGetConvolutionBackwardDataAlgorithm_v7", {*x, *y, *w, *c}, asked, found, to);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t c,
                                                            cudnnFilterDescriptor_t w, int asked, int* found,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* to) {
  return offer("cudnnGetConvolutionBackwardFilterAlgorithm_v7", {*x, *y, *w, *c}, asked, found, to);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                                                      cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                                                      cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  return workspace_of("cudnnGetConvolutionForwardWorkspaceSize", algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t,
                                                           cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                           cudnnTensorDescriptor_t,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           std::size_t* bytes) {
  return workspace_of("cudnnGetConvolutionBackwardDataWorkspaceSize", algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                             cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                             cudnnFilterDescriptor_t,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                             std::size_t* bytes) {
  return workspace_of("cudnnGetConvolutionBackwardFilterWorkspaceSize", algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                      const void* at_x, cudnnFilterDescriptor_t w, const void* at_w,
                                      cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta, cudnnTensorDescriptor_t y,
                                      void* at_y) {
  return start("cudnnConvolutionForward", {handle, algorithm, workspace, bytes, alpha, beta}, {*x, *y, *w, *c},
               convolution::pass::forward, at_x, at_w, at_y);
}
cudnnStatus_t cudnnConvolutionBiasActivationForward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                                    const void* at_x, cudnnFilterDescriptor_t w, const void* at_w,
                                                    cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                                    void* workspace, std::size_t bytes, const void* beta,
                                                    cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t bias,
                                                    const void* at_bias, cudnnActivationDescriptor_t activation,
                                                    cudnnTensorDescriptor_t y, void* at_y) {
  if (bias->extent() != static_cast<std::size_t>(y->shape[1]) || bias->strides[1] != 1 || at_bias == nullptr)
    return misuse("a bias that is not one for each channel");
  if (activation->mode != CUDNN_ACTIVATION_IDENTITY && activation->mode != CUDNN_ACTIVATION_RELU)
    return misuse("an activation");
  return start("cudnnConvolutionBiasActivationForward", {handle, algorithm, workspace, bytes, alpha, beta},
               {*x, *y, *w, *c}, convolution::pass::forward, at_x, at_w, at_y, at_bias,
               activation->mode == CUDNN_ACTIVATION_RELU);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w,
                                           const void* at_w, cudnnTensorDescriptor_t y, const void* at_y,
                                           cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* workspace, std::size_t bytes, const void* beta,
                                           cudnnTensorDescriptor_t x, void* at_x) {
  return start("cudnnConvolutionBackwardData", {handle, algorithm, workspace, bytes, alpha, beta}, {*x, *y, *w, *c},
               convolution::pass::data, at_x, at_w, at_y);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x,
                                             const void* at_x, cudnnTensorDescriptor_t y, const void* at_y,
                                             cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, std::size_t bytes, const void* beta,
                                             cudnnFilterDescriptor_t w, void* at_w) {
  return start("cudnnConvolutionBackwardFilter", {handle, algorithm, workspace, bytes, alpha, beta}, {*x, *y, *w, *c},
               convolution::pass::weights, at_x, at_w, at_y);
}

}  // extern "C"

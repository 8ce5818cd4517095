// tests/cuda/runtime/cudnn_test.cu: what cuDNN is asked for a convolution, on the fake runtime.
#include "../simulated_convolutions.hpp"
#include "checked.hpp"

using namespace sinter;
using g0 = cuda<0>;
using Catch::Contains;
using cuda_impl::library_convolution;
using ops::conv_extents;
using pass = library_convolution::pass;

namespace {

using three = index_t[3];

conv_extents extents(index_t batch, index_t channels, index_t filters, index_t groups, const three& in,
                     const three& kernel, const three& stride, const three& padding, const three& dilation) {
  conv_extents e{batch, channels, filters, groups};
  for (int a = 0; a < 3; ++a) {
    e.in[a] = in[a];
    e.kernel[a] = kernel[a];
    e.stride[a] = stride[a];
    e.padding[a] = padding[a];
    e.dilation[a] = dilation[a];
    e.out[a] = (in[a] + 2 * padding[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1;
  }
  return e;
}
conv_extents small() { return extents(2, 4, 6, 1, {1, 5, 4}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}); }

/// The memory of a convolution on the host, of small whole numbers, and what is asked of a library for a copy on g0.
template <class T>
struct operands {
  std::vector<T> image, weights, result, bias;
  tensor<T, 1, g0> image_there, weights_there, result_there, bias_there;
  library_convolution asked;

  operands(const library_convolution& c) : asked(c) {
    const conv_extents& e = c.e;
    const auto numbers = [](index_t n, index_t period) {
      std::vector<T> v;
      for (index_t i = 0; i < n; ++i) v.push_back(static_cast<T>(static_cast<float>(i * i % period - period / 2)));
      return v;
    };
    image = numbers(e.batch * e.in[0] * e.in[1] * e.in[2] * e.channels, 5);
    weights = numbers(e.filters * e.kernel[0] * e.kernel[1] * e.kernel[2] * (e.channels / e.groups), 7);
    result = numbers(e.batch * e.out[0] * e.out[1] * e.out[2] * e.filters, 3);
    bias = numbers(e.filters, 11);
    image_there = there(image);
    weights_there = there(weights);
    result_there = there(result);
    bias_there = there(bias);
    asked.image = device_pointer(image_there);
    asked.weights = device_pointer(weights_there);
    asked.result = device_pointer(result_there);
    if (asked.has_bias) asked.bias = device_pointer(bias_there);
  }
  static tensor<T, 1, g0> there(const std::vector<T>& v) {
    tensor<T, 1> host = zeros<T>({static_cast<index_t>(v.size())});
    for (std::size_t i = 0; i < v.size(); ++i) host(static_cast<index_t>(i)) = v[i];
    return host.template to<g0>();
  }
  /// Whether cuDNN has done what the host does.
  bool agrees() {
    library_convolution here = asked;
    here.image = image.data();
    here.weights = weights.data();
    here.result = result.data();
    here.bias = asked.has_bias ? bias.data() : nullptr;
    cuda_impl::convolve_now<T>(here);
    const auto same = [](const std::vector<T>& a, const tensor<T, 1, g0>& b) {
      const auto host = b.template to<cpu>();
      for (std::size_t i = 0; i < a.size(); ++i)
        if (static_cast<float>(a[i]) != static_cast<float>(host(static_cast<index_t>(i)))) return false;
      return true;
    };
    return same(image, image_there) && same(weights, weights_there) && same(result, result_there);
  }
};

using by_cudnn = cuda_impl::convolutions_by_cudnn<g0>;

template <class T>
void check(const library_convolution& c) {
  operands<T> o(c);
  INFO(library_convolution::name_of(c.which) << ", add " << c.add << ", bias " << c.has_bias);
  REQUIRE(by_cudnn().takes<T>(o.asked));
  REQUIRE(by_cudnn().run<T>(o.asked));
  CHECK(o.agrees());
}
template <class T>
void check_passes(const conv_extents& e) {
  for (const pass which : {pass::forward, pass::data, pass::weights})
    for (const bool add : {false, true}) check<T>({which, e, add});
  check<T>({pass::forward, e, false, true, false});
  check<T>({pass::forward, e, false, true, true});
}

}  // namespace

TEST_CASE_METHOD(on_fake_gpus, "cuDNN is told the convolution that is wanted") {
  check_passes<float>(small());
  check_passes<float>(extents(2, 6, 4, 2, {1, 7, 6}, {1, 3, 2}, {1, 2, 1}, {0, 1, 0}, {1, 1, 2}));
  check_passes<float>(extents(1, 3, 5, 1, {4, 5, 6}, {2, 3, 1}, {2, 1, 1}, {1, 0, 2}, {1, 2, 1}));
  check_passes<float>(extents(3, 2, 2, 1, {1, 1, 9}, {1, 1, 3}, {1, 1, 2}, {0, 0, 1}, {1, 1, 1}));
  check_passes<float>(extents(1, 2, 3, 1, {1, 3, 3}, {1, 1, 1}, {3, 1, 1}, {1, 0, 0}, {1, 1, 1}));  // of nothing
  check_passes<double>(small());
  check_passes<sinter::half>(small());
  check_passes<bfloat16>(extents(1, 2, 2, 1, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}));
}

TEST_CASE_METHOD(on_fake_gpus, "cuDNN rounds factors to TF32 where matrix products may") {
  const auto e = extents(1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1});
  const auto result_of = [&](matmul_precision p) {
    const use_matmul_precision now(p);
    operands<float> o({pass::forward, e, false});
    o.image_there = o.there({1 + 0x1p-12f});
    o.weights_there = o.there({1});
    o.asked.image = device_pointer(o.image_there);
    o.asked.weights = device_pointer(o.weights_there);
    REQUIRE(by_cudnn().run<float>(o.asked));
    return o.result_there.to<cpu>()(0);
  };
  CHECK(result_of(matmul_precision::float32) == 1 + 0x1p-12f);
  CHECK(result_of(matmul_precision::tf32) == 1);
}

TEST_CASE_METHOD(on_fake_gpus, "what cuDNN has no fitting way for is left to others") {
  conv_extents uneven = small();
  uneven.out[1] += 1;
  CHECK_FALSE(by_cudnn().takes<float>({pass::forward, uneven, false}));
  conv_extents large = small();
  large.batch = index_t{1} << 31;
  CHECK_FALSE(by_cudnn().takes<float>({pass::forward, large, false}));

  // plans are kept, so each of these is a convolution of its own
  auto another = [batch = index_t{10}]() mutable {
    conv_extents e = small();
    e.batch = ++batch;
    return e;
  };
  fake_cuda::settings().deterministic = false;
  CHECK_FALSE(by_cudnn().takes<float>({pass::data, another(), false}));
  fake_cuda::settings() = {};
  fake_cuda::settings().workspace = std::size_t{257} << 20;
  CHECK_FALSE(by_cudnn().takes<float>({pass::weights, another(), false}));
  fake_cuda::settings() = {};
  for (const char* const function : {"cudnnSetConvolutionNdDescriptor", "cudnnGetConvolutionForwardAlgorithm_v7"}) {
    fake_cuda::plan({.library = CUBLAS_STATUS_NOT_SUPPORTED, .function = function});
    CHECK_FALSE(by_cudnn().takes<float>({pass::forward, another(), false}));
    CHECK(fake_cuda::end_plan() == function);
  }

  operands<float> o({pass::forward, another(), false});
  REQUIRE(by_cudnn().takes<float>(o.asked));
  fake_cuda::plan({.library = CUBLAS_STATUS_NOT_SUPPORTED, .function = "cudnnConvolutionForward"});
  CHECK_FALSE(by_cudnn().run<float>(o.asked));
  fake_cuda::end_plan();
  CHECK_FALSE(by_cudnn().takes<float>(o.asked));  // it is not asked again
}

TEST_CASE_METHOD(on_fake_gpus, "an error of cuDNN says what was tried, and the next convolution works") {
  conv_extents e = small();
  e.batch = 50;
  operands<float> o({pass::forward, e, false});
  const auto attempt = [&] { static_cast<void>(by_cudnn().run<float>(o.asked)); };
  fake_cuda::plan({.function = "cudnnGetConvolutionForwardAlgorithm_v7"});
  CHECK_THAT(error_of(attempt), Contains("cuda:0: planning a convolution by cuDNN"));
  fake_cuda::plan({.function = "cudnnConvolutionForward"});
  CHECK_THAT(error_of(attempt), Contains("cuda:0: a convolution by cuDNN"));
  fake_cuda::plan({.library = CUBLAS_STATUS_ALLOC_FAILED, .function = "cudnnConvolutionForward"});
  CHECK_THROWS_AS(attempt(), out_of_memory);
  fake_cuda::end_plan();
  attempt();
  CHECK(o.agrees());
}

// tests/gpu/native_test.cu: kernels, memory and libraries of the caller's own beside Sinter's, where only a GPU can
// tell.
#include "../catch.hpp"

#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

using namespace sinter;
using g0 = cuda<0>;
using other = cuda<1>;

namespace {

// [docs:kernel]
__global__ void clip(const float* x, float* y, index_t n, float limit) {
  const index_t i = index_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < limit ? x[i] : limit;
}
// [docs:end]

unsigned blocks(index_t n) { return static_cast<unsigned>((n + 255) / 256); }

bool same(const tensor<float, 1>& a, const tensor<float, 1>& b) { return !eval(any(a != b)).item(); }

/// What one of CUDA's allocators gave, for a scope.
template <auto Free>
struct freed {
  float* data = nullptr;
  ~freed() { static_cast<void>(Free(data)); }
};

void must(cudaError_t status) {
  INFO(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

}  // namespace

TEST_CASE("a kernel of one's own runs between two statements", "[gpu]") {
  const auto host = arange<float>(1000000);
  for (int i = 0; i < 20; ++i) {
    // [docs:native]
    tensor<float, 1, cuda<0>> x = host.to<cuda<0>>() * 2.f;
    tensor<float, 1, cuda<0>> y = empty_like(x);
    clip<<<blocks(x.numel()), 256, 0, native_stream<cuda<0>>()>>>(device_pointer(x), device_pointer(y), x.numel(),
                                                                  1000.f);
    tensor z = y + 1.f;  // reads what the kernel wrote; nobody has waited
    // [docs:end]
    CHECK(same(z.to<cpu>(), minimum(host * 2.f, 1000.f) + 1.f));
  }
}

TEST_CASE("a kernel of one's own becomes part of a captured step", "[gpu]") {
  const auto x = full<float, g0>({1000}, 3), y = zeros<float, g0>({1000});
  tensor<float, 1, g0> z;
  const auto step = capture<g0>([&] {
    x.in_place() += 1;
    clip<<<blocks(1000), 256, 0, native_stream<g0>()>>>(device_pointer(x), device_pointer(y), 1000, 5.5f);
    z = y * 2;
  });
  step.replay();
  CHECK(z.to<cpu>()(999) == 10);
  step.replay();
  CHECK(z.to<cpu>()(0) == 11);
}

TEST_CASE("the pointer is that of the first element of a view", "[gpu]") {
  const auto x = arange<float, g0>(12).reshape({3, 4});
  CHECK(device_pointer(x.slice(1, 1, 3)) == device_pointer(x) + 1);
  CHECK(device_pointer(x[2]) == device_pointer(x) + 8);
  float value = 0;
  must(cudaMemcpyAsync(&value, device_pointer(x[2]), sizeof value, cudaMemcpyDeviceToHost, native_stream<g0>()));
  must(cudaStreamSynchronize(native_stream<g0>()));
  CHECK(value == 8);
}

TEST_CASE("an empty tensor has no pointer", "[without_gpu]") {
  const tensor<float, 1, g0> nothing;
  CHECK_THROWS_AS(device_pointer(nothing), shape_error);
}

TEST_CASE("each device has a stream of its own, on its GPU", "[gpu]") {
  CHECK(native_stream<g0>() == native_stream<g0>());
  CHECK(native_stream<g0>() != native_stream<other>());
  int before = 0, after = 0;
  must(cudaGetDevice(&before));
  native_stream<other>();
  must(cudaGetDevice(&after));
  CHECK(before == after);
}

TEST_CASE("memory from cudaMalloc is wrapped, read and written", "[gpu]") {
  must(cudaSetDevice(native_device<g0>()));
  freed<cudaFree> memory;
  must(cudaMalloc(&memory.data, 6 * sizeof(float)));
  const tensor x = wrap<g0>(memory.data, {2, 3});
  CHECK(device_pointer(x) == memory.data);
  x.in_place() = ones<float, g0>({2, 3});
  x.in_place() += 1;
  CHECK(eval(sum(x)).item() == 12);
  float last = 0;
  must(cudaMemcpy(&last, memory.data + 5, sizeof last, cudaMemcpyDeviceToHost));
  CHECK(last == 2);
  CHECK(wrap<g0>(memory.data + 4, {2}).numel() == 2);
  const auto own = zeros<float, g0>({5});
  CHECK(wrap<g0>(device_pointer(own), {5}).numel() == 5);
}

TEST_CASE("two devices on one GPU wrap the same memory", "[gpu]") {
  if (!available<other>() || native_device<g0>() != native_device<other>()) return;  // run.sh maps them so
  const auto x = full<float, g0>({4}, 3);
  synchronize<g0>();
  CHECK(wrap<other>(device_pointer(x), {4}).to<cpu>()(3) == 3);
}

TEST_CASE("memory that is not the GPU's is refused", "[gpu]") {
  std::vector<float> pageable(6);
  freed<cudaFreeHost> pinned;
  freed<cudaFree> managed;
  must(cudaMallocHost(&pinned.data, 6 * sizeof(float)));
  must(cudaMallocManaged(&managed.data, 6 * sizeof(float)));
  CHECK_THROWS_AS(wrap<g0>(pageable.data(), {6}), device_error);
  CHECK_THROWS_WITH(wrap<g0>(pageable.data(), {6}),
                    Catch::Contains("the type says cuda:0, but the memory is host memory"));
  CHECK_THROWS_WITH(wrap<g0>(pinned.data, {6}), Catch::Contains("pinned host memory"));
  CHECK_THROWS_WITH(wrap<g0>(managed.data, {6}), Catch::Contains("managed memory"));
  CHECK_THROWS_WITH(wrap<g0>(static_cast<float*>(nullptr), {6}), Catch::Contains("null pointer"));
  CHECK(eval(sum(ones<float, g0>({10}))).item() == 10);
}

#if SINTER_WITH_CUDNN

namespace {

void must(cudnnStatus_t status) {
  INFO(cudnnGetErrorString(status));
  REQUIRE(status == CUDNN_STATUS_SUCCESS);
}

/// y(n,k,i,j) = sum over c, r, s of x(n,c,i+r-1,j+s-1) w(k,c,r,s), with zeros around x.
tensor<float, 4> naive_conv2d(const tensor<float, 4>& x, const tensor<float, 4>& w) {
  auto y = zeros<float>({x.extent(0), w.extent(0), x.extent(2), x.extent(3)});
  for (index_t n = 0; n < x.extent(0); ++n)
    for (index_t k = 0; k < w.extent(0); ++k)
      for (index_t i = 0; i < x.extent(2); ++i)
        for (index_t j = 0; j < x.extent(3); ++j) {
          double sum = 0;
          for (index_t c = 0; c < x.extent(1); ++c)
            for (index_t r = 0; r < 3; ++r)
              for (index_t s = 0; s < 3; ++s) {
                const index_t a = i + r - 1, b = j + s - 1;
                if (a >= 0 && a < x.extent(2) && b >= 0 && b < x.extent(3))
                  sum += static_cast<double>(x(n, c, a, b)) * static_cast<double>(w(k, c, r, s));
              }
          y(n, k, i, j) = static_cast<float>(sum);
        }
  return y;
}

}  // namespace

TEST_CASE("cuDNN tells the version that the program runs with", "[without_gpu]") {
  CHECK(cudnn_version() / 10000 == std::size_t{CUDNN_VERSION} / 10000);
}

TEST_CASE("a convolution of cuDNN reads and writes Sinter's tensors", "[gpu]") {
  generator gen(3);
  const auto x = randn<float>(gen, {2, 3, 9, 7}), w = randn<float>(gen, {4, 3, 3, 3});
  const tensor x_there = x.to<g0>() * 2.f;
  const tensor w_there = w.to<g0>();
  const auto y = empty<float, g0>({2, 4, 9, 7});

  cudnnTensorDescriptor_t x_layout, y_layout;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  must(cudnnCreateTensorDescriptor(&x_layout));
  must(cudnnCreateTensorDescriptor(&y_layout));
  must(cudnnCreateFilterDescriptor(&filter));
  must(cudnnCreateConvolutionDescriptor(&convolution));
  must(cudnnSetTensor4dDescriptor(x_layout, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 9, 7));
  must(cudnnSetTensor4dDescriptor(y_layout, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 9, 7));
  must(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3));
  must(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  must(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH));

  const cudnnHandle_t handle = native_cudnn<g0>();
  const auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  std::size_t bytes = 0;
  must(cudnnGetConvolutionForwardWorkspaceSize(handle, x_layout, filter, convolution, y_layout, algorithm, &bytes));
  const float one = 1, zero = 0;
  {
    const auto workspace = empty<std::uint8_t, g0>({static_cast<index_t>(bytes)});
    must(cudnnConvolutionForward(handle, &one, x_layout, device_pointer(x_there), filter, device_pointer(w_there),
                                 convolution, algorithm, device_pointer(workspace), bytes, &zero, y_layout,
                                 device_pointer(y)));
  }
  const tensor after = eval(y + 1.f).to<cpu>();
  const tensor expected = naive_conv2d(eval(x * 2.f), w) + 1.f;
  CHECK(eval(max(abs(after - expected))).item() < 1e-4f);

  must(cudnnDestroyConvolutionDescriptor(convolution));
  must(cudnnDestroyFilterDescriptor(filter));
  must(cudnnDestroyTensorDescriptor(y_layout));
  must(cudnnDestroyTensorDescriptor(x_layout));
}

TEST_CASE("each thread has a handle of cuDNN, on the device's stream, which is used again when the thread ends",
          "[gpu]") {
  const cudnnHandle_t here = native_cudnn<g0>();
  CHECK(native_cudnn<g0>() == here);
  cudaStream_t stream = nullptr;
  must(cudnnGetStream(here, &stream));
  CHECK(stream == native_stream<g0>());
  cudnnHandle_t first = nullptr, second = nullptr;
  std::thread([&] { first = native_cudnn<g0>(); }).join();
  std::thread([&] { second = native_cudnn<g0>(); }).join();
  CHECK(first != here);
  CHECK(first == second);
}

TEST_CASE("a handle of cuDNN is not made while a step is captured", "[gpu]") {
  std::string text;
  std::thread([&] {
    try {
      capture<g0>([] { native_cudnn<g0>(); }, 0);
    } catch (const device_error& e) {
      text = e.what();
    }
  }).join();
  CHECK_THAT(text, Catch::Contains("call native_cudnn once on this thread before"));
  CHECK_NOTHROW(capture<g0>([] { native_cudnn<g0>(); }));
}

#endif

#if SINTER_WITH_NCCL

TEST_CASE("a sum over GPUs needs tensors with values", "[without_gpu]") {
  const tensor<float, 1, g0> a;
  const tensor<float, 1, other> b;
  CHECK_THROWS_AS(all_reduce(a), shape_error);
  CHECK_THROWS_AS(all_reduce(a, b), shape_error);
}

TEST_CASE("one tensor alone is its own sum", "[gpu]") {
  const auto x = full<float, g0>({1000}, 3);
  const auto before = launches<g0>();
  all_reduce(x);
  CHECK(launches<g0>() == before);
  CHECK(same(x.to<cpu>(), full<float>({1000}, 3)));
}

TEST_CASE("NCCL works in order with the statements around it", "[gpu]") {  // in a group of one, which takes one GPU
  auto x = full<float, g0>({100000}, 3);
  for (int i = 0; i < 3; ++i) {
    x += 1;
    cuda_impl::add_up({{&cuda_impl::context_of<g0>(), device_pointer(x)}}, 100000, ncclFloat32, "a group of one");
  }
  x *= 2;
  CHECK(same(x.to<cpu>(), full<float>({100000}, 12)));
}

TEST_CASE("a communicator over NCCL works in order with the statements around it", "[gpu]") {  // of one rank
  auto world = thread_communicator::make(1).front();
  nccl_communicator<g0> ranks(world);
  auto x = full<float, g0>({100000}, 3);
  for (int i = 0; i < 3; ++i) {
    x += 1;
    ranks.all_reduce(x).get();
  }
  CHECK(same(eval(x * 2).to<cpu>(), full<float>({100000}, 12)));
  CHECK(ranks.split(0, 0).all_gather(x).get().numel() == 100000);
}

TEST_CASE("what cannot be summed over GPUs is refused before anything is started", "[gpu]") {
  if (!available<other>()) return;  // run.sh has it available
  const auto a = full<float, g0>({2, 3}, 1), b = full<float, g0>({2, 1}, 1);
  const auto c = full<float, other>({3, 2}, 2);
  CHECK_THROWS_WITH(all_reduce(a, c), Catch::Contains("(2, 3) on cuda:0") && Catch::Contains("(3, 2) on cuda:1"));
  CHECK_THROWS_AS(all_reduce(b.broadcast_to({2, 3}), c.reshape({2, 3})), shape_error);
  CHECK_THROWS_WITH(capture<g0>([&] { all_reduce(a, c.transpose()); }, 0),
                    Catch::Contains("a graph holds the work of one device"));
  if (native_device<g0>() == native_device<other>())
    CHECK_THROWS_WITH(all_reduce(a, c.transpose()),
                      Catch::Contains("cuda:0 and cuda:1 are both GPU") && Catch::Contains("SINTER_CUDA_MAP"));
  CHECK(eval(sum(a)).item() == 6);
  CHECK(eval(sum(c)).item() == 12);
}

TEMPLATE_TEST_CASE("each of two GPUs gets the sum of both", "[.][two_gpus]", float, double, sinter::half, bfloat16,
                   std::int8_t, std::uint8_t, std::int32_t, std::int64_t) {
  REQUIRE(native_device<g0>() != native_device<other>());
  for (const index_t n : {1, 1000, 300001}) {
    const auto a = full<TestType, g0>({n}, 3);
    const auto b = full<TestType, other>({n}, 4);
    all_reduce(a, b);
    all_reduce(b, a);
    CHECK(eval(min(cast<float>(a))).item() == 14);
    CHECK(eval(max(cast<float>(b))).item() == 14);
  }
}

TEST_CASE("ranks with a GPU each get what the calls over NCCL promise", "[.][two_gpus]") {
  REQUIRE(native_device<g0>() != native_device<other>());
  std::atomic<int> right{0};
  run_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](thread_communicator world) {
    const auto on = [&]<device D>(D) {
      nccl_communicator<D> ranks(world, {.timeout = std::chrono::seconds(60)});
      const int other_rank = 1 - ranks.rank();
      for (const index_t n : {1, 1000, 300001}) {
        const auto mine = [&] { return full<float, D>({n}, float(ranks.rank() + 1)); };
        right += eval(min(ranks.all_reduce(mine()).get())).item() == 3;
        right += eval(max(ranks.all_reduce(mine(), reduction::max).get())).item() == 2;
        right += eval(max(ranks.broadcast(mine(), 1).get())).item() == 2;
        right += eval(sum(ranks.all_gather(mine()).get())).item() == 3 * float(n);
        auto sent = ranks.send(mine(), other_rank);
        right += eval(min(ranks.template receive<float>(n, other_rank).get())).item() == float(other_rank + 1);
        sent.get();
      }
    };
    if (world.rank() == 0) on(g0{});
    else on(other{});
  });
  CHECK(right == 30);
}

TEST_CASE("views of two GPUs are summed through", "[.][two_gpus]") {
  const auto a = arange<float, g0>(12).reshape({3, 4});
  const auto b = ones<float, other>({4, 3});
  all_reduce(a.slice(1, 1, 3), b.slice(0, 0, 2).transpose());
  const tensor sum_of_a = a.to<cpu>(), sum_of_b = b.to<cpu>();
  CHECK(sum_of_a(1, 0) == 4);
  CHECK(sum_of_a(1, 1) == 6);
  CHECK(sum_of_a(2, 2) == 11);
  CHECK(sum_of_b(1, 2) == 11);
  CHECK(sum_of_b(2, 2) == 1);
}

TEST_CASE("the tape notices a sum over GPUs", "[.][two_gpus]") {
  variable w = full<float, g0>({4}, 3);
  const auto x = full<float, g0>({4}, 2);
  const variable loss = sum(w * x);
  all_reduce(x, ones<float, other>({4}));
  CHECK_THROWS_AS(loss.backward(), autograd_error);
}

#endif

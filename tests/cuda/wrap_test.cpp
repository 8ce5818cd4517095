// tests/cuda/wrap_test.cpp: memory of the caller's own on a simulated GPU, wrapped where it lies and nowhere else.
#include "../catch.hpp"

#include "simulator.hpp"

#include <vector>

using namespace sinter;
using other = cuda<1>;
using cuda_impl::simulated_memory;

namespace {

/// Memory for n floats on a GPU, or managed, for a scope.
class borrowed {
 public:
  borrowed(int on, std::size_t n) : source_(on), data_(static_cast<float*>(source_.take(n * sizeof(float)))) {
    std::fill_n(data_, n, 2.f);
  }
  borrowed(const borrowed&) = delete;
  borrowed& operator=(const borrowed&) = delete;
  ~borrowed() { source_.give(data_); }
  float* data() const { return data_; }

 private:
  simulated_memory source_;
  float* data_;
};

}  // namespace

TEST_CASE("wrapped memory of a GPU is read and written in place") {
  const borrowed memory(0, 6);
  const auto in_use = sinter::memory<gpu<0>>().bytes_in_use;
  {
    const tensor x = wrap<gpu<0>>(memory.data(), {2, 3});
    STATIC_REQUIRE(std::is_same_v<decltype(x), const tensor<float, 2, gpu<0>>>);
    CHECK(sinter::memory<gpu<0>>().bytes_in_use == in_use);
    x.in_place() += 1;
    x.slice(0, 1, 2) *= 10;
    const tensor on_host = x.to<cpu>();
    CHECK(on_host(0, 2) == 3);
    CHECK(on_host(1, 0) == 30);
    CHECK(eval(sum(x * 2)).item() == 198);
  }
  CHECK(memory.data()[5] == 30);
  CHECK(sinter::memory<gpu<0>>().bytes_in_use == in_use);
}

TEST_CASE("a part of wrapped memory, and that of a tensor, can be wrapped again") {
  const borrowed memory(1, 6);
  CHECK(wrap<other>(memory.data() + 4, {2}).to<cpu>()(1) == 2);
  const auto x = full<float, gpu<0>>({8}, 5);
  CHECK(eval(sum(wrap<gpu<0>>(detail::access::data(x) + 2, extents<1>{{3}}))).item() == 15);
}

TEST_CASE("nothing is asked of memory for no element") {
  CHECK(wrap<gpu<0>>(static_cast<float*>(nullptr), {0, 3}).numel() == 0);
}

TEST_CASE("memory that is not where the type says is refused, with both places and a way out") {
  std::vector<float> here(6);
  CHECK_THROWS_AS(wrap<gpu<0>>(here.data(), {6}), device_error);
  CHECK_THROWS_WITH(wrap<gpu<0>>(here.data(), {2, 3}),
                    "wrap: the type says cuda:0, but the memory is host memory; wrap it as cpu and copy with "
                    ".to<cuda<0>>(), or take memory from cudaMalloc on that GPU");
  const borrowed there(1, 6), managed(simulated_memory::managed, 6);
  CHECK_THROWS_WITH(wrap<gpu<0>>(there.data(), {6}), Catch::Contains("the type says cuda:0") &&
                                                         Catch::Contains("the memory is that of GPU 1") &&
                                                         Catch::Contains("as cuda<1>"));
  CHECK_NOTHROW(wrap<other>(there.data(), {6}));
  CHECK_THROWS_WITH(wrap<gpu<0>>(managed.data(), {6}), Catch::Contains("managed memory"));
  CHECK_THROWS_WITH(wrap<gpu<0>>(static_cast<float*>(nullptr), {6}),
                    Catch::Contains("null pointer for shape (6,) on cuda:0"));
}

TEST_CASE("memory that ends before the tensor does is refused") {
  const borrowed memory(0, 6);
  CHECK_THROWS_WITH(wrap<gpu<0>>(memory.data(), {1 << 20, 1 << 20}),
                    Catch::Contains("4398046511104 bytes begin on cuda:0, but end in"));
}

TEST_CASE("wrapped memory takes part in gradients and in captured steps") {
  const borrowed memory(0, 4);
  const tensor x = wrap<gpu<0>>(memory.data(), {4});
  variable w = full<float, gpu<0>>({4}, 3);
  const variable loss = sum(w * x);
  loss.backward();
  CHECK(w.grad().to<cpu>()(3) == 2);
  const variable again = sum(w * x);
  x.in_place() += 1;
  CHECK_THROWS_AS(again.backward(), autograd_error);
  const auto step = capture<gpu<0>>([&] { wrap<gpu<0>>(memory.data(), {4}) += 1; });
  step.replay();
  CHECK(x.to<cpu>()(0) == 5);
}

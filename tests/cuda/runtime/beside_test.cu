// tests/cuda/runtime/beside_test.cu: copies on a GPU's copy stream, beside its other work, on the fake runtime.
#include <sinter/parallel/copy_worker.hpp>

#include <cstring>
#include <future>
#include <thread>

#include "checked.hpp"

using namespace sinter;
using g0 = cuda<0>;
using g1 = cuda<1>;
using Catch::Contains;

namespace {

constexpr index_t chunk = static_cast<index_t>(cuda_impl::staging::chunk / sizeof(float));

/// Runs f on the thread of D's copy worker. Errors: what f throws.
template <device D, class F>
void on_copy_worker(const F& f) {
  std::promise<void> begun;
  auto& worker = sinter::detail::copy_worker_of<D>();
  const auto job = worker.post([&] {
    begun.set_value();
    f();
  });
  begun.get_future().wait();
  worker.wait(job);
}

/// Puts work on D's stream that sets every byte of x.
template <device D>
void set_later(const tensor<float, 1, D>& x, int byte) {
  const cuda_impl::use_gpu current(cuda_impl::context_of<D>().gpu());
  cudaMemsetAsync(device_pointer(x), byte, static_cast<std::size_t>(x.numel()) * sizeof(float), native_stream<D>());
}
tensor<float, 1> of_bytes(index_t n, int byte) {
  auto t = tensor<float, 1>::uninitialized({n});
  std::memset(t.data(), byte, static_cast<std::size_t>(n) * sizeof(float));
  return t;
}
/// Puts work on D's stream that copies x.
template <device D>
tensor<float, 1, D> copied_later(const tensor<float, 1, D>& x) {
  const auto y = tensor<float, 1, D>::uninitialized({x.numel()});
  sinter::detail::device_runtime<D>::copy_within(device_pointer(y), device_pointer(x),
                                                 static_cast<std::size_t>(x.numel()) * sizeof(float));
  return y;
}
/// What the GPU's memory holds now, without waiting for anything.
template <device D>
tensor<float, 1> as_it_is(const tensor<float, 1, D>& x) {
  auto t = tensor<float, 1>::uninitialized({x.numel()});
  std::memcpy(t.data(), device_pointer(x), static_cast<std::size_t>(x.numel()) * sizeof(float));
  return t;
}

}  // namespace

TEST_CASE_METHOD(on_fake_gpus,
                 "copies beside the program and the work put on the device meanwhile do not wait for each other") {
  const auto host = counting(1000), ones = of_bytes(1000, 1), twos = of_bytes(1000, 2);
  const auto x = host.to<g0>(), y = host.to<g0>();
  synchronize<g0>();
  bool meanwhile = false, arrived = false;
  const auto after_copy_began = [&](const char* function, const auto& f) {
    meanwhile = arrived = false;
    fake_cuda::before_next(function, [&meanwhile, f] { f(), meanwhile = true; });
  };
  const auto copies_of_another_thread = [&] {
    std::thread([&] { arrived = same(host.to<g0>().to<cpu>(), host); }).join();
  };

  after_copy_began("cudaEventSynchronize", [&] {  // the copy has not run yet, what comes later has: it changes x
    copies_of_another_thread();
    set_later(x, 1);
    synchronize<g0>();
  });
  tensor<float, 1> down;
  on_copy_worker<cpu>([&] { down = x.to<cpu>(); });
  CHECK(meanwhile);
  CHECK(arrived);
  CHECK(same(down, ones));

  after_copy_began("cudaStreamSynchronize", [&] {
    synchronize<g1>();
    set_later(x, 2);
    synchronize<g0>();
    set_later(y, 2);
  });
  tensor<float, 1, g1> across;
  on_copy_worker<g1>([&] { across = x.to<g1>(); });
  CHECK(meanwhile);
  CHECK(same(as_it_is(across), twos));
  CHECK(same(as_it_is(y), host));

  after_copy_began("cudaEventSynchronize", copies_of_another_thread);
  CHECK(same(as_it_is(host.to_async<g0>().get()), host));
  CHECK(meanwhile);
  CHECK(arrived);

  empty_cache<g0>();
  auto up = host.to<g0>();
  set_later(up, 3);
  const float* const block = device_pointer(up);
  up = {};
  float there = 0;
  after_copy_began("cudaStreamSynchronize", [&] {
    synchronize<g0>();
    there = block[7];
    set_later(y, 1);
  });
  SECTION("on the worker") {
    on_copy_worker<g0>([&] { up = host.to<g0>(); });
  }
  SECTION("on a thread of to_async") { up = host.to_async<g0>().get(); }
  CHECK(meanwhile);
  REQUIRE(device_pointer(up) == block);
  CHECK(there == of_bytes(1, 3)(0));
  CHECK(same(as_it_is(up), host));
  CHECK(same(as_it_is(y), twos));
  synchronize<g0>();
  CHECK(same(as_it_is(y), ones));
}

TEST_CASE_METHOD(on_fake_gpus, "copies beside the program run after what was put on their devices before") {
  const auto first = counting(1000), second = counting(1000, 5000);
  const auto x = first.to<g0>();
  set_later(x, 1);
  CHECK(same(x.to_async<cpu>().get(), of_bytes(1000, 1)));

  empty_cache<g0>();
  empty_cache<g1>();
  auto read = first.to<g0>();
  synchronize<g0>();
  const float* block = device_pointer(read);
  auto reader = copied_later(read);
  read = {};
  const auto up = second.to_async<g0>().get();
  REQUIRE(device_pointer(up) == block);
  synchronize<g0>();
  CHECK(same(as_it_is(reader), first));
  CHECK(same(as_it_is(up), second));

  auto read_there = first.to<g1>();
  synchronize<g1>();
  block = device_pointer(read_there);
  const auto reader_there = copied_later(read_there);
  read_there = {};
  set_later(x, 2);
  const auto across = x.to_async<g1>().get();
  REQUIRE(device_pointer(across) == block);
  synchronize<g1>();
  CHECK(same(as_it_is(reader_there), first));
  CHECK(same(as_it_is(across), of_bytes(1000, 2)));
}

TEST_CASE_METHOD(on_fake_gpus, "a job of several copies waits anew only for who has used their memory since") {
  const auto first = counting(1000), second = counting(1000, 5000);
  empty_cache<g0>();
  auto a = first.to<g0>(), b = first.to<g0>(), c = first.to<g0>(), y = first.to<g0>();
  const float* const blocks[] = {device_pointer(a), device_pointer(b), device_pointer(c)};
  auto reader = copied_later(a);
  a = {};
  b = {};
  const auto freed_later = [&] {
    auto copy = copied_later(c);
    c = {};
    return copy;
  };
  on_copy_worker<g0>([&] {
    a = second.to<g0>();
    CHECK(same(as_it_is(reader), first));
    set_later(y, 1);
    b = second.to<g0>();
    CHECK(same(as_it_is(y), first));
    reader = freed_later();
    c = second.to<g0>();
    CHECK(same(as_it_is(y), of_bytes(1000, 1)));
    CHECK(same(as_it_is(reader), first));
    CHECK(same(second.to<g0>().to<cpu>(), second));
  });
  CHECK(device_pointer(a) == blocks[0]);
  CHECK(device_pointer(b) == blocks[1]);
  CHECK(device_pointer(c) == blocks[2]);
  for (const auto* x : {&a, &b, &c}) CHECK(same(as_it_is(*x), second));
}

TEST_CASE_METHOD(on_fake_gpus, "copies beside the program are over when their job is, also after an error") {
  const auto first = counting(3 * chunk), second = counting(3 * chunk, 5000);
  auto x = first.to_async<g0>().get();
  CHECK(same(as_it_is(x), first));
  const auto across = x.to_async<g1>().get();
  CHECK(same(as_it_is(across), first));

  empty_cache<g0>();
  const float* const block = device_pointer(x);
  x = {};
  fake_cuda::plan({.after = 2, .function = "cudaMemcpyAsync"});
  CHECK_THAT(error_of([&] { on_copy_worker<g0>([&] { static_cast<void>(first.to<g0>()); }); }),
             Contains("cuda:0: copying 3145728 bytes from the host"));
  REQUIRE(fake_cuda::end_plan() == "cudaMemcpyAsync");
  x = second.to<g0>();
  REQUIRE(device_pointer(x) == block);
  synchronize<g0>();
  static_cast<void>(first.to_async<g0>().get());
  CHECK(same(as_it_is(x), second));
}

TEST_CASE_METHOD(on_fake_gpus, "copies beside the program are no part of a step that is captured") {
  const auto host = counting(1000);
  auto x = host.to<g0>();
  std::string said[2];
  const auto step = capture<g0>(
      [&] {
        x += 1;
        said[0] = error_of([&] { on_copy_worker<cpu>([&] { static_cast<void>(x.to<cpu>()); }); });
        said[1] = error_of([&] { on_copy_worker<g0>([&] { static_cast<void>(host.to<g0>()); }); });
      },
      0);
  for (const std::string& text : said) CHECK_THAT(text, Contains("another thread captures a step on cuda:0"));
  CHECK(step.kernels() == 1);

  std::size_t kernels = 0;
  fake_cuda::before_next("cudaStreamSynchronize", [&] { kernels = capture<g0>([&] { x += 1; }, 0).kernels(); });
  CHECK(same(host.to_async<g0>().get().to<cpu>(), host));
  CHECK(kernels == 1);
}

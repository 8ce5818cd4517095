// tests/cuda/runtime/device_test.cu: contexts, copies, memory and errors of a GPU, on the fake runtime.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "checked.hpp"

using namespace sinter;
using g0 = cuda<0>;
using g1 = cuda<1>;
using Catch::Contains;

namespace {

constexpr index_t chunk = static_cast<index_t>(cuda_impl::staging::chunk / sizeof(float)),
                  chunks = cuda_impl::staging::chunks;

/// What SINTER_CUDA_MAP is for as long as it lives; devices that were used before stay what they are.
struct mapped {
  explicit mapped(const char* list) { setenv("SINTER_CUDA_MAP", list, 1); }
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;
  ~mapped() { unsetenv("SINTER_CUDA_MAP"); }
};

template <device D>
const void* address(const tensor<float, 1, D>& t) {
  return sinter::detail::access::data(t);
}

constexpr std::size_t mib = std::size_t{1} << 20;
template <device D>
tensor<float, 1, D> of_mib(index_t n) {
  return tensor<float, 1, D>::uninitialized({n << 18});
}
template <device D>
bool within_bound() {
  const memory_stats s = memory<D>();
  return s.bytes_in_use + s.bytes_cached <= s.peak_bytes + std::max(s.peak_bytes / 2, 64 * mib);
}

}  // namespace

TEST_CASE_METHOD(on_fake_gpus, "copies of any number of chunks arrive whole, in all directions") {
  for (const index_t n : {index_t{1}, index_t{1000}, chunk - 1, chunk, chunk + 1, chunks * chunk, chunks * chunk + 1,
                          2 * chunks * chunk + 12345}) {
    const auto host = counting(n);
    CHECK(same(host.to<g0>().to<cpu>(), host));
    CHECK(same(host.to<g0>().to<g1>().to<cpu>(), host));
    CHECK(same(host.to<g1>().to<g0>().to<g1>().to<cpu>(), host));
    CHECK(same(host.to_async<g0>().get().to_async<g1>().get().to_async<cpu>().get(), host));
  }
}

TEST_CASE_METHOD(on_fake_gpus, "two devices on one GPU copy to each other as two GPUs do") {
  const mapped same_gpu("0,1,2,3,2,2");
  using a = cuda<4>;
  using b = cuda<5>;
  for (const index_t n : {index_t{7}, chunks * chunk + 1}) {
    const auto host = counting(n);
    CHECK(same(host.to<a>().to<b>().to<cpu>(), host));
    CHECK(same(host.to<b>().to<a>().to<g0>().to<b>().to<cpu>(), host));
  }
}

TEST_CASE_METHOD(on_fake_gpus, "GPUs that cannot reach each other copy all the same") {
  fake_cuda::settings().peers = false;
  const auto host = counting(chunk + 5);
  CHECK(same(host.to<cuda<2>>().to<cuda<3>>().to<cpu>(), host));
}

TEST_CASE_METHOD(on_fake_gpus, "the source of a copy may change once the statement is over") {
  std::vector<tensor<float, 1, g0>> copies;
  auto host = counting(3 * chunk);
  for (int i = 0; i < 8; ++i) {
    copies.push_back(host.to<g0>());
    host += 1;
  }
  for (int i = 0; i < 8; ++i) CHECK(same(copies[static_cast<std::size_t>(i)].to<cpu>(), counting(3 * chunk, i)));
}

TEST_CASE_METHOD(on_fake_gpus, "memory that another GPU still reads is not handed out before") {
  const auto first = counting(1000), second = counting(1000, 5000);
  auto here = first.to<g0>();
  const void* const block = address(here);
  const auto there = here.to<g1>();
  here = {};
  const auto next = second.to<g0>();
  REQUIRE(address(next) == block);
  synchronize<g0>();
  CHECK(same(there.to<cpu>(), first));
  CHECK(same(next.to<cpu>(), second));
}

TEST_CASE_METHOD(on_fake_gpus, "the GPU that the program has selected does not matter and stays selected") {
  const auto host = counting(chunk + 1);
  const auto everything = [&] {
    const auto x = host.to<g0>();
    const auto y = x.to<g1>();
    auto z = zeros<float, g1>({100});
    z += 1;
    synchronize<g1>();
    CHECK(same(y.to<cpu>(), host));
    empty_cache<g0>();
  };
  for (const int gpu : {3, 1, 0}) {
    use(gpu);
    everything();
    CHECK(used() == gpu);
  }
  use(2);
  int seen = -1;
  std::thread([&] {
    cudaSetDevice(1);
    everything();
    seen = used();
  }).join();
  CHECK(seen == 1);
  CHECK(used() == 2);
}

TEST_CASE_METHOD(on_fake_gpus, "threads use a device each, and one together") {
  std::atomic<int> bad{0};
  const auto work = [&bad]<class D>(D) {
    for (int i = 0; i < 20; ++i) {
      const auto host = counting(chunk + 100, i);
      auto there = host.template to<D>();
      auto other = zeros<float, D>({1000});
      other += 1;
      if (!same(there.template to<cpu>(), host)) ++bad;
    }
  };
  std::thread threads[] = {std::thread(work, g0{}), std::thread(work, g1{}), std::thread(work, g0{}),
                           std::thread(work, g1{})};
  for (std::thread& t : threads) t.join();
  CHECK(bad == 0);
}

TEST_CASE_METHOD(on_fake_gpus, "as many launches are counted as there were") {
  const auto counted = launches<g0>(), there = launches<g1>();
  const auto before = fake_cuda::launches().size();
  auto x = zeros<float, g0>({1000});
  x += 1;
  x += 1;
  const auto y = zeros<float, g1>({0});
  CHECK(launches<g0>() - counted == 3);
  CHECK(launches<g1>() == there);
  CHECK(fake_cuda::launches().size() - before == 3);
}

TEST_CASE_METHOD(on_fake_gpus, "a context clears its counters before anything runs") {
  const mapped one_more("0,1,2,3,2,2,1");
  const unsigned* const counters = cuda_impl::context_of<cuda<6>>().arrivals();
  for (int i = 0; i < cuda_impl::max_arrivals; ++i)
    if (counters[i] != 0) FAIL("counter " << i << " is " << counters[i]);
}

TEST_CASE_METHOD(on_fake_gpus, "what is missing for a GPU is told, with what to do") {
  using none = cuda<9>;
  const auto refused = [] { return error_of([] { zeros<float, none>({1}); }); };
  auto& machine = fake_cuda::settings();
  CHECK_FALSE(available<none>());
  CHECK_THAT(refused(), Contains("cuda:9 is not available") && Contains("there are 4 GPUs"));
  CHECK(available<g1>());
  machine.gpus = 0;
  CHECK_FALSE(available<none>());
  CHECK_FALSE(available<g0>());
  CHECK_THAT(refused(), Contains("cuda:9 is not available") && Contains("CUDA_VISIBLE_DEVICES"));
  machine.driver = 12020;
  CHECK_FALSE(available<none>());
  CHECK_THAT(error_of([] { with_device<none, cpu>("cuda:9", [](auto) {}); }),
             Contains("with_device: cuda:9 is not available") && Contains("12.2"));
  CHECK_THAT(refused(), Contains("the driver is for CUDA 12.2") && Contains("install a newer driver"));
  machine.driver = 0;
  CHECK_FALSE(available<none>());
  CHECK_THAT(refused(), Contains("there is no NVIDIA driver"));
  machine = {};
  cudaGetLastError();
}

TEST_CASE_METHOD(on_fake_gpus, "a list of devices that is none is refused, and one that is shorter counts") {
  using beyond = cuda<10>;
  const auto refused = [] { return error_of([] { zeros<float, beyond>({1}); }); };
  {
    const mapped wrong("0;1");
    CHECK_FALSE(available<g0>());
    CHECK_THAT(refused(), Contains("SINTER_CUDA_MAP is '0;1'"));
  }
  {
    const mapped wrong("0,7");
    CHECK_FALSE(available<g0>());
    CHECK_THAT(refused(), Contains("SINTER_CUDA_MAP names GPU 7, but there are 4"));
  }
  const mapped one("3");
  CHECK(available<g0>());
  CHECK_FALSE(available<g1>());
  CHECK_THAT(refused(), Contains("cuda:10 is not available: SINTER_CUDA_MAP lists 1"));
}

TEST_CASE_METHOD(on_fake_gpus, "a program without code for the GPU says how to compile it") {
  fake_cuda::settings().code = false;
  CHECK_THAT(error_of([] { zeros<float, g0>({1}); }),
             Contains("cuda:0: launching 'an elementwise statement' over shape (1,) with 1 blocks of 256 threads") &&
                 Contains("-arch=native"));
  fake_cuda::settings().code = true;
  CHECK_NOTHROW(zeros<float, g0>({1}));
}

TEST_CASE_METHOD(on_fake_gpus, "an error that the program has left behind is not that of the next statement") {
  auto x = zeros<float, g0>({10});
  const auto before = launches<g0>();
  CHECK(cudaEventSynchronize(nullptr) != cudaSuccess);
  static_cast<void>(fake_cuda::misuses());
  CHECK_NOTHROW(x += 1);
  CHECK(launches<g0>() == before + 1);
  CHECK(cudaGetLastError() != cudaSuccess);
}

TEST_CASE_METHOD(on_fake_gpus, "where memory is short the cache is given back before a statement fails") {
  synchronize<g0>();
  empty_cache<g0>();
  const std::size_t taken = fake_cuda::bytes_taken(0);
  fake_cuda::settings().memory = taken + 64 * mib;
  {
    const auto a = of_mib<g0>(24), b = of_mib<g0>(24);
  }
  CHECK(memory<g0>().bytes_cached >= 48 * mib);
  const auto large = of_mib<g0>(60);
  CHECK(memory<g0>().bytes_cached == 0);
  const auto in_use = memory<g0>().bytes_in_use;
  CHECK_THROWS_AS(of_mib<g0>(8), out_of_memory);
  CHECK_THAT(error_of([&] { of_mib<g0>(8); }), Contains("cuda:0: out of memory allocating 8388608 bytes") &&
                                                   Contains(std::to_string(in_use) + " bytes are in use"));
  CHECK(memory<g0>().bytes_in_use == in_use);
  CHECK_NOTHROW(of_mib<g0>(2));
}

TEST_CASE_METHOD(on_fake_gpus, "blocks longest unused go back to the GPU, after the work that uses them") {
  using g3 = cuda<3>;
  fake_cuda::settings().memory = 1024 * mib;
  synchronize<g3>();
  empty_cache<g3>();
  const std::size_t own = fake_cuda::bytes_taken(3) - memory<g3>().bytes_held;
  const auto host = counting(10 << 18);
  const auto copy = of_mib<g3>(10);
  {
    const auto first = host.to<g3>();
    sinter::detail::device_runtime<g3>::copy_within(sinter::detail::access::data(copy),
                                                    sinter::detail::access::data(first), 10 * mib);
  }
  const std::size_t before = memory<g3>().system_frees;
  for (const index_t n : {20, 40, 80}) {
    static_cast<void>(of_mib<g3>(n));
    CHECK(within_bound<g3>());
    CHECK(fake_cuda::bytes_taken(3) == own + memory<g3>().bytes_held);
  }
  CHECK(memory<g3>().system_frees == before + 1);
  CHECK(same(copy.to<cpu>(), host));
}

TEST_CASE_METHOD(on_fake_gpus, "no GPU takes memory back while this thread captures a step") {
  using g2 = cuda<2>;
  fake_cuda::settings().memory = 2048 * mib;
  const auto x = counting(1000).to<g0>();
  tensor<float, 1, g0> y;
  synchronize<g2>();
  empty_cache<g2>();
  std::string freed;
  {
    const auto step = capture<g0>(
        [&] {
          fake_cuda::plan({.function = "cudaFree"});
          y = x * 2;
          for (const index_t n : {30, 60, 120}) {
            static_cast<void>(of_mib<g0>(n));
            static_cast<void>(of_mib<g2>(n));
          }
          empty_cache<g2>();
          freed = fake_cuda::end_plan();
        },
        0);
    CHECK(freed == "");
    CHECK_FALSE(within_bound<g2>());
    CHECK(memory<g0>().bytes_reserved >= 200 * mib);
    static_cast<void>(of_mib<g2>(1));
    CHECK(within_bound<g2>());
  }
  CHECK(within_bound<g0>());
}

TEST_CASE_METHOD(on_fake_gpus,
                 "a forked child is told that it cannot use its parent's GPUs, and goes on with host devices") {
  auto x = zeros<float, g0>({10});
  synchronize<g0>();
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);  // only where it hangs
    bool told = true;
    for (const std::string& text : {error_of([&] { x += 1; }), error_of([&] { static_cast<void>(x.to<cpu>()); }),
                                    error_of([&] { synchronize<g0>(); })})
      told = told && Contains("forked").match(text);
    _exit(told && eval(sum(ones<float>({100000}))).item() == 100000 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK_NOTHROW(x += 1);
}

TEST_CASE_METHOD(on_fake_gpus, "a GPU that breaks down is reported where the program waits, and from then on") {
  auto x = zeros<float, g0>({1000});
  synchronize<g0>();
  x += 1;
  fake_cuda::break_soon(cudaErrorIllegalAddress);
  CHECK_THAT(error_of([] { synchronize<g0>(); }), Contains("cuda:0") && Contains("compute-sanitizer"));
  CHECK_THROWS_AS(x += 1, device_error);
  CHECK_THROWS_AS(x.to<cpu>(), device_error);
  CHECK_THROWS_AS(counting(10).to<g0>(), device_error);
  x = {};
  empty_cache<g0>();
  fake_cuda::mend();
}

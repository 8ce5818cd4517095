// tests/cuda/runtime/faults_test.cu: products and training steps on the fake runtime, with every call in them failing
// in turn.
#include <atomic>
#include <functional>
#include <thread>

#include "checked.hpp"

using namespace sinter;
using g0 = cuda<0>;
using g1 = cuda<1>;
using Catch::Contains;

namespace {

const fake_cuda::fault kinds[] = {
    {.error = cudaErrorUnknown, .library = CUBLAS_STATUS_EXECUTION_FAILED, .function = {}},
    {.error = cudaErrorLaunchOutOfResources, .library = CUBLAS_STATUS_ALLOC_FAILED, .function = {}},
    {.error = cudaErrorMemoryAllocation, .library = CUBLAS_STATUS_NOT_SUPPORTED, .function = {}}};

/// Calls that may fail without an exception: what gives something back, and what has another way.
bool is_forgiven(const std::string& function) {
  for (const char* const known :
       {"cudaFree", "cudaFreeHost", "cudaStreamDestroy", "cudaEventDestroy", "cudaGraphDestroy", "cudaGraphExecDestroy",
        "cudaSetDevice", "cudaMalloc", "cublasLtMatmulAlgoGetHeuristic"})
    if (function == known) return true;
  return false;
}

/// Runs attempt() with the n-th call of it failing, for n = 1, 2, ... until there are no more calls, and after each of
/// these afterwards(name of the call), where an error of `also_forgiven` need not be one of the attempt. The text of an
/// error names the device and the name of what was tried.
template <class F, class G>
void each_call_fails(const F& attempt, const G& afterwards, const std::string& also_forgiven = {}) {
  for (fake_cuda::fault fault : kinds)
    for (fault.after = 1;; ++fault.after) {
      const int gpu = on_fake_gpus::used();
      std::string said;
      fake_cuda::plan(fault);
      try {
        attempt();
      } catch (const device_error& e) {
        said = e.what();
      } catch (const out_of_memory& e) {
        said = e.what();
      }
      const std::string failed = fake_cuda::end_plan();
      INFO("call " << fault.after << ", " << failed << " with error " << fault.error << ": " << said);
      if (failed.empty()) {
        CHECK(said.empty());
        CHECK(fault.after > 1);
        break;
      }
      if (said.empty()) CHECK((is_forgiven(failed) || failed == also_forgiven));
      else CHECK_THAT(said, Contains("cuda:") || Contains("GPU "));
      if (failed == "cudaSetDevice") cudaSetDevice(gpu);
      CHECK(on_fake_gpus::used() == gpu);
      CHECK(cudaGetLastError() == cudaSuccess);
      afterwards(failed);
      const auto wrong = fake_cuda::misuses();
      CHECK(wrong == std::vector<std::string>{});
      if (!wrong.empty()) return;
    }
}

template <class Optimizer>
struct training {
  explicit training(index_t rows = 10)
      : optimizer(model, {.lr = 0.1}), x(zeros<float, g0>({rows, 6})), labels(zeros<std::int64_t, g0>({rows})) {}

  generator gen{3};
  nn::sequential<nn::linear<float, g0>, nn::relu, nn::linear<float, g0>> model{
      nn::linear<float, g0>(6, 8, gen), nn::relu(), nn::linear<float, g0>(8, 3, gen)};
  Optimizer optimizer;
  tensor<float, 2, g0> x;
  tensor<std::int64_t, 1, g0> labels;

  void step() {
    optimizer.zero_grad();
    const variable loss = cross_entropy(model(x), labels);
    loss.backward();
    optimizer.step();
  }
  bool is_whole() {
    bool whole = true;
    model.for_each_parameter(
        [&](const std::string&, const auto& p) { whole = whole && p.value().defined() && p.value().numel() > 0; });
    return whole;
  }
};

float value(index_t i) { return static_cast<float>((i * 37) % 23) / 8 - 1.25f; }
template <int R>
tensor<float, R> numbers(const extents<R>& shape) {
  auto t = tensor<float, R>::uninitialized(shape);
  for (index_t i = 0; i < t.numel(); ++i) t.data()[i] = value(i);
  return t;
}

template <int R>
void check_close(const tensor<float, R>& a, const tensor<float, R>& b) {
  CHECK(eval(max(abs(a - b))).item() < 1e-5f);
}

}  // namespace

TEST_CASE_METHOD(on_fake_gpus, "products are asked of cuBLASLt as they are meant") {
  const auto a = numbers<2>({5, 7}), b = numbers<2>({7, 4}), c = numbers<2>({9, 7});
  const auto on = [](const auto& t) { return t.template to<g0>(); };
  check_close(eval(matmul(on(a), on(b))).to<cpu>(), eval(matmul(a, b)));
  check_close(eval(matmul(on(b).transpose(0, 1), on(a).transpose(0, 1))).to<cpu>(),
              eval(matmul(b.transpose(0, 1), a.transpose(0, 1))));
  const auto many = numbers<3>({3, 5, 7}), more = numbers<3>({3, 7, 2});
  check_close(eval(matmul(on(many), on(more))).to<cpu>(), eval(matmul(many, more)));
  const auto bias = numbers<1>({9});
  check_close(eval(relu(linear(on(a), on(c), on(bias)))).to<cpu>(), eval(relu(linear(a, c, bias))));
  CHECK(fake_cuda::launches().back().kernel == "cublasLtMatmul");
}

TEST_CASE_METHOD(on_fake_gpus, "gradients of layers are asked of cuBLASLt as they are meant") {
  const auto run = []<device D>(D) {
    const auto x = numbers<2>({5, 8}).template to<D>(), g = numbers<2>({5, 2}).template to<D>();
    const variable w(numbers<2>({16, 8}).template to<D>()), v(numbers<2>({3, 16}).template to<D>()),
        u(numbers<2>({3, 2}).template to<D>());
    const variable b(numbers<1>({16}).template to<D>()), d(numbers<1>({3}).template to<D>()),
        e(numbers<1>({2}).template to<D>());
    const variable y = matmul(linear(relu(linear(x, w, b)), v, d), u) + e;
    y.backward(g);
    const auto host = [](const auto& t) { return t.template to<cpu>(); };
    return std::pair{std::vector{host(y.value()), host(w.grad()), host(v.grad()), host(u.grad())},
                     std::vector{host(b.grad()), host(d.grad()), host(e.grad())}};
  };
  const auto here = run(cpu{});
  const auto before = fake_cuda::launches().size();
  const auto there = run(g0{});
  for (std::size_t i = 0; i < here.first.size(); ++i) check_close(here.first[i], there.first[i]);
  for (std::size_t i = 0; i < here.second.size(); ++i) check_close(here.second[i], there.second[i]);
  for (std::size_t i = before; i < fake_cuda::launches().size(); ++i)
    CHECK(fake_cuda::launches()[i].kernel == "cublasLtMatmul");
}

TEST_CASE_METHOD(on_fake_gpus, "a training step launches what it counts, with epilogues and without") {
  for (const bool epilogues : {true, false}) {
    fake_cuda::settings().epilogues = epilogues;
    training<optim::adam> t(epilogues ? 10 : 11);
    t.step();
    const auto counted = launches<g0>();
    const auto before = fake_cuda::launches().size();
    t.step();
    CHECK(launches<g0>() - counted == fake_cuda::launches().size() - before);
    synchronize<g0>();
  }
}

TEMPLATE_TEST_CASE("a step in which any call fails leaves the program as it was", "", optim::sgd, optim::adam) {
  on_fake_gpus machine;
  const int used = GENERATE(0, 3);
  machine.use(used);
  training<TestType> t;
  t.step();
  t.optimizer.zero_grad();
  const auto in_use = memory<g0>().bytes_in_use;
  index_t rows = 10;
  each_call_fails(
      [&] {
        t.x = zeros<float, g0>({rows, 6});  // other products each time: their plans are part of the step
        t.labels = zeros<std::int64_t, g0>({rows});
        ++rows;
        t.step();
      },
      [&](const std::string&) {
        t.optimizer.zero_grad();
        t.x = zeros<float, g0>({10, 6});
        t.labels = zeros<std::int64_t, g0>({10});
        CHECK(memory<g0>().bytes_in_use == in_use);
        CHECK(t.is_whole());
        CHECK_NOTHROW(t.step());
        CHECK_NOTHROW(synchronize<g0>());
        t.optimizer.zero_grad();
      });
}

TEMPLATE_TEST_CASE("a first step in which any call fails can be repeated", "", optim::sgd, optim::adam) {
  on_fake_gpus machine;
  const auto in_use = memory<g0>().bytes_in_use;
  each_call_fails([] { training<TestType>().step(); },
                  [&](const std::string&) {
                    CHECK(memory<g0>().bytes_in_use == in_use);
                    CHECK_NOTHROW(training<TestType>().step());
                  });
  training<TestType> t;
  each_call_fails([&] { t.step(); }, [&](const std::string&) { CHECK_NOTHROW(t.step()); });
}

TEST_CASE_METHOD(on_fake_gpus, "a capture in which any call fails leaves the device as it was") {
  training<optim::adam> t;
  t.step();
  t.optimizer.zero_grad();
  const auto in_use = memory<g0>().bytes_in_use;
  auto living = fake_cuda::now_living();
  each_call_fails([&] { capture<g0>([&] { t.step(); }); },
                  [&](const std::string& failed) {
                    const auto now = fake_cuda::now_living();
                    CHECK(now.graphs == living.graphs + (failed == "cudaGraphDestroy" ? 1 : 0));
                    CHECK(now.executables == living.executables + (failed == "cudaGraphExecDestroy" ? 1 : 0));
                    living = now;
                    t.optimizer.zero_grad();
                    CHECK(memory<g0>().bytes_in_use == in_use);
                    CHECK(memory<g0>().bytes_reserved == 0);
                    CHECK_NOTHROW(t.step());
                    const auto counted = launches<g0>();
                    const auto before = fake_cuda::launches().size();
                    const auto step = capture<g0>([&] { t.step(); }, 0);
                    CHECK(launches<g0>() == counted + 1);  // it clears its count of runs
                    CHECK(fake_cuda::launches().size() == before + 1);
                    step.replay();
                    CHECK(launches<g0>() == counted + 1 + step.kernels());
                    CHECK(fake_cuda::launches().size() == before + 1 + step.kernels());
                    CHECK_NOTHROW(synchronize<g0>());
                    t.optimizer.zero_grad();
                  },
                  "cudaGetDevice");  // before the end of the capture, which comes in any case
}

TEST_CASE_METHOD(on_fake_gpus, "what a captured step must not do is refused before CUDA hears of it") {
  use(3);
  const auto host = numbers<2>({4, 4});
  const auto x = host.to<g0>();
  tensor<float, 2, g0> y;
  const std::function<void()> forbidden[] = {
      [&] { static_cast<void>(x.to<cpu>()); },   [] { synchronize<g0>(); },
      [&] { static_cast<void>(host.to<g0>()); }, [&] { static_cast<void>(x.to<g1>()); },
      [&] { static_cast<void>(host.to<g1>()); }, [] { synchronize<g1>(); }};
  const std::function<void()>* next = nullptr;
  const auto step = [&] {
    y = matmul(x, x);
    if (next != nullptr) (*next)();
  };
  for (const auto& one : forbidden) {
    next = &one;
    CHECK_THROWS_AS(capture<g0>(step, 0), device_error);
    next = nullptr;
    const auto recorded = capture<g0>(step, 0);
    recorded.replay();
    check_close(y.to<cpu>(), eval(matmul(host, host)));
  }
}

TEST_CASE_METHOD(on_fake_gpus,
                 "while a step is captured, other threads use other devices, and are refused on this one") {
  const auto host = numbers<2>({4, 4});
  const auto x = host.to<g0>();
  tensor<float, 2, g0> y;
  std::string said;
  bool arrived = false;
  const auto step = capture<g0>(
      [&] {
        y = matmul(x, x);
        std::thread([&] {
          arrived = same(host.to<g1>().to<cpu>(), host);
          const auto fresh = tensor<float, 1, g1>::uninitialized({1 << 20});
          empty_cache<g1>();
          said = error_of([&] { static_cast<void>(x.to<cpu>()); });
        }).join();
        y = matmul(y, x);
      },
      0);
  CHECK(arrived);
  CHECK_THAT(said, Contains("another thread captures a step on cuda:0"));
  CHECK(step.kernels() == 2);
  step.replay();
  check_close(y.to<cpu>(), eval(matmul(matmul(host, host), host)));
}

TEST_CASE_METHOD(on_fake_gpus,
                 "uploads and launches of another thread stay out of the graphs that are captured meanwhile") {
  const auto host = counting(5 * 262144);
  auto x = zeros<float, g0>({10}), theirs = zeros<float, g0>({10});
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0};
  std::thread other([&] {
    while (!stop) {
      const std::string said = error_of([&] {
        theirs += 1;
        static_cast<void>(host.to<g0>());
      });
      if (!said.empty() && said.find("another thread captures") == std::string::npos) ++bad;
    }
  });
  std::vector<cuda_graph<g0>> steps;
  for (int i = 0; i < 300; ++i) steps.push_back(capture<g0>([&] { x += 1; }, 0));
  stop = true;
  other.join();
  CHECK(bad == 0);
  for (const auto& step : steps) {
    const auto before = fake_cuda::launches().size();
    step.replay();
    synchronize<g0>();
    bad += fake_cuda::launches().size() != before + 1;
  }
  CHECK(bad == 0);
  CHECK(same(host.to<g0>().to<cpu>(), host));
}

TEST_CASE_METHOD(on_fake_gpus, "a replay that fails can be repeated") {
  const auto a = numbers<2>({6, 5}), b = numbers<2>({5, 4});
  const auto there = a.to<g0>(), factor = b.to<g0>();
  tensor<float, 2, g0> y;
  const auto step = capture<g0>([&] { y = matmul(there, factor); }, 0);
  each_call_fails([&] { step.replay(); }, [&](const std::string&) { CHECK_NOTHROW(step.replay()); });
  check_close(y.to<cpu>(), eval(matmul(a, b)));
}

TEST_CASE_METHOD(on_fake_gpus, "copies in which any call fails can be repeated, and bring what they should") {
  const auto first = counting(300000), second = counting(300000, 7);
  const auto in_use = [] { return std::pair{memory<g0>().bytes_in_use, memory<g1>().bytes_in_use}; };
  static_cast<void>(first.to<g0>().to<g1>().to<cpu>());
  const auto before = in_use();
  for (const int gpu : {0, 2}) {
    use(gpu);
    each_call_fails(
        [&] {
          const auto there = first.to<g0>().to<g1>();
          synchronize<g0>();
          const bool one = same(there.to<cpu>(), first),
                     other = same(there.to_async<g0>().get().to_async<cpu>().get(), first);
          CHECK(one);
          CHECK(other);
        },
        [&](const std::string&) {
          CHECK(in_use() == before);
          CHECK(same(second.to<g1>().to<g0>().to<cpu>(), second));
        });
  }
}

TEST_CASE_METHOD(on_fake_gpus, "uploads go on with the right bytes after one has failed") {
  constexpr index_t n = 3 * static_cast<index_t>(cuda_impl::staging::chunk / sizeof(float));
  std::vector<tensor<float, 1>> hosts;
  for (int i = 0; i < 8; ++i) hosts.push_back(counting(n, i));
  for (const char* const function : {"cudaMemcpyAsync", "cudaEventRecord", "cudaEventSynchronize"})
    for (std::size_t call = 1; call <= 3; ++call) {
      fake_cuda::plan({.after = call, .function = function});
      CHECK_THROWS_AS(hosts[1].to<g0>(), device_error);
      REQUIRE(fake_cuda::end_plan() == function);
      std::vector<tensor<float, 1, g0>> there;
      for (const auto& host : hosts) there.push_back(host.to<g0>());
      for (std::size_t i = 0; i < hosts.size(); ++i) CHECK(same(there[i].to<cpu>(), hosts[i]));
    }
}

TEST_CASE_METHOD(on_fake_gpus, "the source of a copy between GPUs may be freed after the copy has failed") {
  const auto host = counting(1000);
  static_cast<void>(host.to<g0>().to<g1>());
  for (const char* const function : {"cudaEventRecord", "cudaStreamWaitEvent"})
    for (std::size_t call = 1; call <= 2; ++call) {
      auto here = host.to<g0>();
      fake_cuda::plan({.after = call, .function = function});
      CHECK_THROWS_AS(here.to<g1>(), device_error);
      REQUIRE(fake_cuda::end_plan() == function);
      here = {};
      empty_cache<g0>();
      synchronize<g1>();
    }
}

TEST_CASE_METHOD(on_fake_gpus, "a path between GPUs that could not be opened is asked for again") {
  for (const char* const function : {"cudaDeviceCanAccessPeer", "cudaDeviceEnablePeerAccess"}) {
    const auto host = counting(10);
    const auto copied = [&] { return host.to<g0>().to<cuda<2>>(); };
    fake_cuda::plan({.function = function});
    CHECK_THAT(error_of(copied), Contains("cuda:2") && Contains("path to cuda:0"));
    REQUIRE(fake_cuda::end_plan() == function);
    CHECK_FALSE(fake_cuda::has_path(2, 0));
  }
  static_cast<void>(counting(10).to<g0>().to<cuda<2>>());
  CHECK(fake_cuda::has_path(2, 0));
}

TEST_CASE_METHOD(on_fake_gpus, "products whose first use fails leave nothing behind and can be asked for again") {
  const auto living = fake_cuda::now_living();
  const auto in_use = memory<g1>().bytes_in_use;
  index_t rows = 2;
  const auto product = [&] { return matmul(numbers<2>({++rows, 3}).to<g1>(), numbers<2>({3, 4}).to<g1>()); };
  each_call_fails([&] { const tensor<float, 2, g1> y = product(); },
                  [&](const std::string&) {
                    const auto now = fake_cuda::now_living();
                    CHECK(now.libraries <= living.libraries + 1);
                    CHECK((now.descriptors - living.descriptors) % 4 == 0);  // a plan has four
                    CHECK(memory<g1>().bytes_in_use == in_use);
                    const tensor<float, 2, g1> y = product();
                    check_close(y.to<cpu>(), eval(matmul(numbers<2>({rows, 3}), numbers<2>({3, 4}))));
                  });
}

TEST_CASE_METHOD(on_fake_gpus, "a device whose first use fails leaves nothing behind and can be used later") {
  setenv("SINTER_CUDA_MAP", "0,1,2,3,0,1,2", 1);
  const auto first_use = [this]<device D>(D, fake_cuda::fault fault) {
    const auto living = fake_cuda::now_living();
    for (fault.after = 1;; ++fault.after) {
      fake_cuda::plan(fault);
      const std::string said = error_of([] { cuda_impl::context_of<D>(); });
      const std::string failed = fake_cuda::end_plan();
      use(0);
      if (said.empty()) {
        CHECK((failed.empty() || failed == "cudaSetDevice"));  // which leads back to the program's GPU
        CHECK(fault.after > 8);
        break;
      }
      INFO("call " << fault.after << ", " << failed << ": " << said << "; " << fake_cuda::text(living) << "became "
                   << fake_cuda::text(fake_cuda::now_living()));
      CHECK_THAT(said, Contains(device_name<D>()) || Contains("GPU "));
      CHECK(fake_cuda::now_living() == living);
    }
    CHECK(same(counting(10).to<D>().template to<cpu>(), counting(10)));
  };
  first_use(cuda<4>{}, kinds[0]);
  first_use(cuda<5>{}, kinds[1]);
  first_use(cuda<6>{}, kinds[2]);
  unsetenv("SINTER_CUDA_MAP");
}

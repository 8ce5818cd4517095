// tests/devices/traits_test.cpp: devices as docs/devices.md shows them: traits, copies, gradients, run-time choice.
#include "../catch.hpp"
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

// [docs:traits]
// Takes two expressions on one device; anything else is not a candidate.
template <expression A, expression B>
  requires same_device<A, B>
auto squared_distance(const A& a, const B& b) {
  return sum(square(a - b));
}

// A scratch tensor on the device of whatever is passed.
template <expression E>
auto scratch_like(const E& e) {
  return zeros<float, device_of<E>>({e.shape()[0]});
}
// [docs:end]

template <class A, class B>
concept has_distance = requires(A a, B b) { squared_distance(a, b); };
static_assert(has_distance<tensor<float, 1>, tensor<float, 1>>);
static_assert(!has_distance<tensor<float, 1>, tensor<float, 1, numa<0>>>);
static_assert(!has_distance<tensor<float, 1, cuda<0>>, tensor<float, 1, cuda<1>>>);
static_assert(on_device<tensor<float, 1, cuda<1>>, cuda<1>> && !on_device<tensor<float, 1, cuda<1>>, cuda<0>>);
static_assert(addable<tensor<float, 2, cuda<0>>, tensor<float, 2, cuda<0>>>);
static_assert(!addable<tensor<float, 2, cuda<0>>, tensor<float, 2>>);
static_assert(is_cpu_v<numa<3>> && !is_cuda_v<numa<3>> && is_cuda_v<cuda<0>>);

// Host-only code names, stores and passes GPU tensors.
struct layers {
  tensor<float, 2, cuda<0>> on_gpu;
  tensor<float, 2> on_host;
};

}  // namespace

TEST_CASE("copies: the same handle on the same device, new memory on another") {
  // [docs:copies]
  tensor<float, 1> x = {1, 2, 3};
  tensor same = x.to<cpu>();           // the same handle: no copy
  tensor moved = x.to<numa<1>>();      // a copy, of type tensor<float, 1, numa<1>>
  auto coming = x.to_async<numa<0>>(); // started in the background
  tensor arrived = coming.get();       // waited for; before that there is nothing to read
  copy(moved, x);                      // into existing memory
  float total = eval(sum(arrived)).item();
  // [docs:end]
  CHECK(same.data() == x.data());
  CHECK(total == 6);
  CHECK(eval(1 - moved / 2)(2) == Approx(-0.5));
}

TEST_CASE("gradients flow back through a copy and add up where the variable lives") {
  // [docs:gradients]
  variable w = tensor<float, 1>{1, 2};
  variable there = w.to<numa<0>>();
  variable squares = sum(there * there);
  variable loss = squares.to<cpu>() + sum(w);
  loss.backward();  // w.grad() lives on the cpu: 2 w from the other device, and 1
  // [docs:end]
  CHECK(w.grad()(0) == Approx(3));
  CHECK(w.grad()(1) == Approx(5));
}

TEST_CASE("the three kinds of host device have memory of their own") {
  const auto before = memory<numa<1>>().bytes_in_use;
  const auto a = zeros<float, numa<1>>({1024});
  CHECK(memory<numa<1>>().bytes_in_use >= before + 4096);
  CHECK(scratch_like(a).shape()[0] == 1024);
}

TEST_CASE("a run-time choice enters once") {
  // [docs:choice]
  const auto run = [](const std::string& choice) {
    return with_device<cuda<0>, cpu>(choice, [](auto d) { return device_name<decltype(d)>(); });
  };
  // [docs:end]
  CHECK(device_name<numa<1>>() == "numa:1");
  CHECK_FALSE(available<cuda<0>>());
  CHECK(run("") == "cpu");
  CHECK(run("cpu") == "cpu");
  CHECK_THROWS_AS(run("cuda:0"), device_error);
  CHECK_THROWS_AS(run("tpu"), device_error);
}

TEST_CASE("host-only code stores GPU tensors and asks about them") {
  const layers l{};
  CHECK_FALSE(l.on_gpu.defined());
}

// tests/devices/programs_test.cpp: programs over several devices that must compile, and what they must compute.
#include <string>
#include <tuple>
#include <utility>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

template <device D>
void check_literals() {
  const tensor<float, 1, D> x = arange<float, D>(4);
  const tensor<float, 1, D> y = 1 - x / 2;
  CHECK(y(0) == 1);
  CHECK(y(3) == -0.5f);
  const tensor<float, 1, D> z = 2 * x + 1.0 - x * x;  // a double literal takes the tensor's float
  CHECK(z(3) == -2);
  const tensor<int, 1, D> i = 7 - cast<int>(x);
  CHECK(i(3) == 4);
}

// [docs:is_cuda]
template <device D>
std::string where_it_is(const tensor<float, 2, D>& x) {
  std::string text = device_name<D>() + ": " + std::to_string(x.numel()) + " elements";
  if constexpr (is_cuda_v<D>) return text + " on a GPU";
  else return text + ", the first is " + std::to_string(x(0, 0));  // host access, which no GPU tensor has
}
// [docs:end]

template <device D>
std::size_t in_use() {
  return memory<D>().bytes_in_use;
}

auto halves_of_local() {
  const tensor<float, 1> local = {2, 4, 6};
  return 1 - local / 2;
}

auto score_of_locals(const tensor<float, 2>& x) {
  generator gen(3);
  const auto w = randn<float>(gen, {4, 3});
  const auto b = ones<float>({4});
  auto h = relu(linear(x, w, b));
  const auto row = h * 0.5f + mean(h, 1, keepdim);
  return where(row > 0, row, 0) + let(exp(row), [](auto t) { return t * t - t; });
}

}  // namespace

TEST_CASE("literals mix with tensors of any device", "[devices]") {
  check_literals<cpu>();
  check_literals<numa<0>>();
  check_literals<numa<1>>();
  static_assert(std::is_same_v<device_of<decltype(1 - std::declval<tensor<float, 1, cuda<0>>>() / 2)>, cuda<0>>);
}

TEST_CASE("tensors are created on a device and moved by to", "[devices]") {
  // [docs:create]
  tensor<float, 2> a = zeros<float>({2, 3});                   // on the cpu, the default
  tensor<float, 2, numa<0>> b = ones<float, numa<0>>({2, 3});  // on NUMA node 0
  tensor c = zeros_like(b);                                    // where b is, and of its type
  generator gen(7);
  tensor<float, 2, numa<1>> d = randn<float, numa<1>>(gen, {2, 3});
  // [docs:end]
  static_assert(std::is_same_v<decltype(c), tensor<float, 2, numa<0>>>);
  // [docs:move]
  tensor<float, 2> on_cpu = b.to<cpu>();     // a copy on another device
  tensor<float, 2> same = on_cpu.to<cpu>();  // the device it is on: the same handle, nothing is copied
  copy(d, a);                                // into memory that is there already
  float total = eval(sum(b)).item();         // one number, read to the host
  tensor scaled = d * total;                 // a number goes anywhere
  // [docs:end]
  CHECK(on_cpu(1, 2) == 1);
  CHECK(on_cpu.data() != b.data());
  CHECK(same.data() == on_cpu.data());
  CHECK(a(1, 2) == d(1, 2));
  CHECK(total == 6);
  CHECK(scaled(0, 0) == 6 * d(0, 0));
}

TEST_CASE("to of a view copies what the view shows", "[devices]") {
  const tensor<float, 2> a = {{1, 2, 3}, {4, 5, 6}};
  const auto moved = a.transpose().slice(0, 0, 3, 2).to<numa<0>>();
  REQUIRE(moved.shape() == extents<2>{{2, 2}});
  CHECK(moved.is_dense());
  CHECK(moved(1, 0) == 3);
  CHECK(moved(1, 1) == 6);
  CHECK(tensor<float, 0>(sum(a)).to<numa<1>>().item() == 21);
  CHECK(zeros<float>({0, 3}).to<numa<0>>().numel() == 0);
}

TEST_CASE("both branches of a copy are used and their gradients are summed", "[devices]") {
  // [docs:gradient]
  variable<float, 1> w = tensor<float, 1>{1, 2, 3};  // the parameter lives on the cpu
  auto there = w.to<numa<0>>();                      // its copy on another device is a variable too
  variable far = sum(square(there));                 // d/dw = 2 w, computed on numa<0>
  variable near = sum(3 * w);                        // d/dw = 3, computed on the cpu
  variable loss = far.to<cpu>() + near;              // gradients flow back through both copies
  loss.backward();
  tensor<float, 1> g = w.grad();  // on the cpu, as w is: 2 w + 3
  // [docs:end]
  CHECK(loss.item() == 14 + 18);
  CHECK(g(0) == 5);
  CHECK(g(1) == 7);
  CHECK(g(2) == 9);
}

TEST_CASE("a gradient crosses devices in both directions and lands where the leaf is", "[devices]") {
  variable<float, 1, numa<1>> w = tensor<float, 1>{1, 2}.to<numa<1>>();
  auto a = w.to<numa<0>>();
  variable<float, 1, numa<0>> b = a * a;
  auto c = b.to<cpu>();
  variable<float, 1> d = c * c;
  auto e = d.to<numa<1>>();
  variable<float, 0, numa<1>> loss = sum(e + w);  // w^4 + w
  loss.backward();
  static_assert(std::is_same_v<decltype(w.grad()), tensor<float, 1, numa<1>>>);
  CHECK(w.grad()(0) == 5);
  CHECK(w.grad()(1) == 33);
}

TEST_CASE("two copies of one parameter on two devices give one gradient", "[devices]") {
  variable<double, 1> w = tensor<double, 1>{1, -2};
  auto left = w.to<numa<0>>();
  auto right = w.to<numa<1>>();
  variable<double, 0, numa<0>> l = sum(left * 2);
  variable<double, 0, numa<1>> r = sum(right * right);
  l.backward();
  r.backward();
  CHECK(w.grad()(0) == 4);
  CHECK(w.grad()(1) == -2);
}

TEST_CASE("a constant copied to another device has no gradient", "[devices]") {
  variable<float, 1> w = tensor<float, 1>{1, 2};
  const tensor<float, 1, numa<0>> fixed = w.detach().to<numa<0>>();
  auto moved = w.to<numa<0>>();
  variable<float, 0, numa<0>> loss = sum(moved * fixed);
  loss.backward();
  CHECK(w.grad()(1) == 2);
  const no_grad guard;
  CHECK(w.to<numa<0>>().is_leaf());
}

TEST_CASE("to on the same device keeps the handle and the place in the graph", "[devices]") {
  const tensor<float, 1> x = {1, 2, 3};
  CHECK(x.to<cpu>().data() == x.data());
  const auto view = x.slice(0, 1, 3).to<cpu>();
  CHECK(view.data() == x.data() + 1);
  variable<float, 1, numa<0>> w = x.to<numa<0>>();
  auto same = w.to<numa<0>>();
  static_assert(std::is_same_v<decltype(same), variable<float, 1, numa<0>>>);
  CHECK(same.value().data() == w.value().data());
  CHECK(same.is_leaf());
  variable loss = sum(same * w);
  loss.backward();
  CHECK(same.grad().data() == w.grad().data());
  CHECK(w.grad()(2) == 6);
}

TEST_CASE("if constexpr on the device picks code that only one kind of device compiles", "[devices]") {
  CHECK(where_it_is(full<float>({2, 2}, 3)) == "cpu: 4 elements, the first is 3.000000");
  CHECK(where_it_is(full<float, numa<1>>({1, 2}, 5)) == "numa:1: 2 elements, the first is 5.000000");
  static_assert(std::is_same_v<decltype(where_it_is(std::declval<tensor<float, 2, cuda<0>>>())), std::string>);
}

TEST_CASE("parameters on mixed devices sit in one tuple and train together", "[devices]") {
  std::tuple<variable<float, 1>, variable<float, 1, numa<0>>, variable<float, 1, numa<1>>> parameters{
      full<float>({2}, 1), full<float, numa<0>>({2}, 2), full<float, numa<1>>({2}, 3)};
  variable loss =
      std::apply([](const auto&... p) { return eval((eval(sum(square(p))).template to<cpu>() + ...)); }, parameters);
  CHECK(loss.item() == 2 * (1 + 4 + 9));
  loss.backward();
  std::apply([](const auto&... p) { ((p.value() -= 0.25f * p.grad()), ...); }, parameters);
  CHECK(std::get<0>(parameters)(1) == 0.5f);
  CHECK(std::get<1>(parameters)(1) == 1);
  CHECK(std::get<2>(parameters)(1) == 1.5f);
}

TEST_CASE("an optimizer takes parameters on mixed devices", "[devices]") {
  variable<float, 1> a = full<float>({2}, 1);
  variable<float, 1, numa<1>> b = full<float, numa<1>>({2}, 2);
  optim::sgd step(a, {.lr = 0.5});
  step.add(b);
  variable loss = eval(sum(a)) + eval(sum(square(b))).to<cpu>();
  loss.backward();
  step.step();
  CHECK(a(0) == 0.5f);
  CHECK(b(0) == 0);
}

TEST_CASE("auto expressions outlive the tensors they are made of", "[devices]") {
  auto e = halves_of_local();
  CHECK(eval(e)(2) == -2);
  auto twice = e + e;
  e = halves_of_local();
  CHECK(eval(twice)(0) == 0);

  generator gen(5);
  auto score = [&] {
    const auto x = rand<float>(gen, {6, 3});
    return score_of_locals(x);
  }();
  const auto y = eval(score);
  CHECK(y.shape() == extents<2>{{6, 4}});
  CHECK(eval(all(isfinite(y))).item());

  auto tracked = [] {
    variable<float, 1> w = tensor<float, 1>{1, 2};
    return sum(square(w.to<numa<0>>()) * 2);
  }();
  CHECK(eval(tracked).item() == 10);

  auto masked = [] {
    tensor<float, 1> a = {1, -1};
    auto copy_of = a.clone();
    return where(a > 0, copy_of, -1);
  };
  CHECK(eval(masked())(1) == -1);
}

TEST_CASE("with_device enters the type of a device once, by name", "[devices]") {
  // [docs:with_device]
  auto report = [](auto d) {
    using D = decltype(d);
    tensor<float, 1, D> x = arange<float, D>(5);
    return device_name<D>() + " says " + std::to_string(eval(sum(x)).item());
  };
  std::string chosen = with_device<numa<1>, cpu>("numa:1", report);
  std::string usual = with_device<numa<1>, cpu>("", report);  // the first that is available
  // [docs:end]
  CHECK(chosen == "numa:1 says 10.000000");
  CHECK(usual == chosen);
  CHECK(with_device<numa<1>, cpu>("cpu", report) == "cpu says 10.000000");
  CHECK(with_device<cpu, numa<0>>("auto", report) == "cpu says 10.000000");
  CHECK_THROWS_AS((with_device<cpu, numa<0>>("cuda:0", report)), device_error);
  CHECK_THROWS_WITH((with_device<cpu>("tpu", report)), Catch::Contains("tpu"));
}

TEST_CASE("with_device skips GPUs that are not there", "[devices]") {
  const auto name = [](auto d) { return device_name<decltype(d)>(); };
  if (available<cuda<63>>()) return;
  CHECK(with_device<cuda<63>, cpu>("", name) == "cpu");
  CHECK_THROWS_WITH((with_device<cuda<63>, cpu>("cuda:63", name)), Catch::Contains("cuda:63 is not available"));
}

TEST_CASE("available answers for every device without crashing", "[devices]") {
  CHECK(available<cpu>());
  CHECK(available<numa<0>>());
  CHECK(available<numa<9>>());
  CHECK_FALSE(available<cuda<63>>());
}

TEST_CASE("a pending copy must be awaited before it can be read", "[devices]") {
  const auto x = arange<float>(1000);
  // [docs:to_async]
  pending<tensor<float, 1, numa<0>>> coming = x.to_async<numa<0>>();
  tensor y = x * 2;                            // work that does not need the copy
  tensor<float, 1, numa<0>> z = coming.get();  // waits; rethrows what went wrong on the way
  // [docs:end]
  CHECK(y(3) == 6);
  CHECK(z(999) == 999);
  static_assert(!expression<pending<tensor<float, 1, numa<0>>>>);
  static_assert(!std::is_convertible_v<pending<tensor<float, 1, numa<0>>>, tensor<float, 1, numa<0>>>);
  CHECK_THROWS_AS(coming.get(), value_error);
}

TEST_CASE("cpu and NUMA nodes are devices of their own, each with its arena", "[devices]") {
  const std::size_t on_cpu = in_use<cpu>();
  const std::size_t on_0 = in_use<numa<0>>();
  const std::size_t on_1 = in_use<numa<1>>();
  constexpr std::size_t bytes = 4096 * sizeof(float);
  {
    const auto a = full<float, numa<0>>({64, 64}, 1);
    CHECK(in_use<numa<0>>() >= on_0 + bytes);
    CHECK(in_use<numa<1>>() == on_1);
    CHECK(in_use<cpu>() == on_cpu);
    const auto b = a.to<numa<1>>();
    CHECK(in_use<numa<1>>() >= on_1 + bytes);
    CHECK(in_use<cpu>() == on_cpu);
    const auto c = eval(b * 2);
    CHECK(in_use<numa<1>>() >= on_1 + 2 * bytes);
    CHECK(c(63, 63) == 2);
    variable<float, 2, numa<0>> w = a;
    variable loss = sum(square(w.to<numa<1>>()));
    loss.backward();
    CHECK(w.grad()(5, 5) == 2);
    CHECK(in_use<cpu>() == on_cpu);
  }
  CHECK(in_use<numa<0>>() == on_0);
  CHECK(in_use<numa<1>>() == on_1);
}

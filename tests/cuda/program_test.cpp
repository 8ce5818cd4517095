// tests/cuda/program_test.cpp: products, modules, optimizers and whole training runs on simulated GPUs, against the
// CPU.
#include <sinter/parallel.hpp>

#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;
using g1 = cuda<1>;

TEST_CASE("matrix products of dense, transposed, sliced and strided operands", "[cuda]") {
  const auto a = numbers({7, 5}, 1), b = numbers({5, 9}, 2), c = numbers({9, 5}, 3), d = numbers({5, 7}, 4);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y); }, a, b) < 1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y.transpose()); }, a, c) < 1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x.transpose(), y); }, d, b) < 1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x.transpose(), y.transpose()); }, d, c) <
        1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x.slice(1, 1, 4), y.slice(0, 2, 5)); }, a, b) <
        1e-5);
  CHECK(compare::values(
            [](const auto& x, const auto& y) { return matmul(x.slice(1, 0, 5, 2), y.slice(0, 0, 5, 2).flip(1)); }, a,
            b) < 1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return relu(matmul(x * 2, y) + 1); }, a, b) < 1e-5);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y); }, numbers<double>({4, 3}, 5),
                        numbers<double>({3, 2}, 6)) < 1e-12);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y); }, numbers<int>({4, 3}, 5),
                        numbers<int>({3, 2}, 6)) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y); }, numbers({3, 7, 5}, 7),
                        numbers({3, 5, 2}, 8)) < 1e-5);
  for (const index_t m : {0, 1, 3})
    for (const index_t k : {0, 1, 3})
      for (const index_t n : {0, 1, 3})
        CHECK(compare::values([](const auto& x, const auto& y) { return matmul(x, y) + 1; }, numbers({m, k}, 9),
                              numbers({k, n}, 10)) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& y) { return eval(tanh(matmul(x, y))); }, a, b) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& w, const auto& v) { return eval(relu(linear(x, w, v))); }, a,
                           c, numbers({9}, 5)) < 1e-5);
}

namespace {

/// The losses of a few steps on D.
template <device D, class Optimizer, class Options>
std::vector<double> train(const Options& options) {
  generator gen(3);
  const auto x = numbers({40, 12}, 1).to<D>();
  const auto labels = eval(cast<std::int64_t>(abs(numbers({40}, 2)) * 0.5f)).template to<D>();
  auto model = nn::sequential(nn::linear(12, 16, gen), nn::relu(), nn::linear(16, 8, gen)).template to<D>();
  Optimizer optimizer(model, options);
  std::vector<double> losses;
  for (int i = 0; i < 6; ++i) {
    optimizer.zero_grad();
    const variable loss = cross_entropy(model(x), labels);
    loss.backward();
    optim::clip_grad_norm(model, 1.0);
    optimizer.step();
    losses.push_back(loss.item());
  }
  return losses;
}

template <class Optimizer, class Options>
void check_training(const Options& options) {
  const auto host = train<cpu, Optimizer>(options), there = train<g0, Optimizer>(options);
  CHECK(host.back() < host.front());
  for (std::size_t i = 0; i < host.size(); ++i) CHECK(there[i] == Approx(host[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("training runs on a GPU lose what they lose on the CPU", "[cuda]") {
  check_training<optim::sgd>(optim::sgd::options_type{.lr = 0.1, .momentum = 0.9});
  check_training<optim::adam>(optim::adam::options_type{.lr = 0.01});
  check_training<optim::rmsprop>(optim::rmsprop::options_type{.lr = 0.01});
}

TEST_CASE("a model laid out over the CPU and two GPUs", "[cuda]") {
  generator gen(3);
  const nn::linear first(6, 8, gen);
  const auto second = nn::linear(8, 8, gen).to<g0>();
  const auto third = nn::linear(8, 3, gen).to<g1>();
  const auto x = numbers({5, 6}, 1);
  const variable h = relu(first(x));
  const variable on_0 = relu(second(h.to<g0>()));
  const variable y = third(on_0.to<g1>());
  const variable loss = mean(square(y));
  loss.backward();
  const auto host_second = second.to<cpu>();
  const auto host_third = third.to<cpu>();
  const variable expected = mean(square(host_third(relu(host_second(relu(first(x)))))));
  CHECK(loss.item() == Approx(expected.item()).epsilon(1e-5));
  const tensor in_between = first.weight.grad().clone();
  first.zero_grad();
  expected.backward();
  CHECK(distance(in_between, first.weight.grad()) < 1e-5);
}

TEST_CASE("running moments of a part that runs again in backward move once", "[cuda]") {
  const auto moments_of = [](auto&& layer, auto&& x) {
    const auto again = nn::checkpointed(layer);
    const variable y = again(x);
    sum(square(y)).backward();
    CHECK(layer.num_batches_tracked.value().item() == 1);
    return eval(layer.running_var.value());
  };
  const auto x = numbers({5, 3});
  const auto there = moments_of(nn::batch_norm1d<float>(3).to<g0>(), variable(x.to<g0>()));
  CHECK(distance(there, moments_of(nn::batch_norm1d<float>(3), variable(x.clone()))) < 1e-5);
}

TEST_CASE("random numbers and dropout have the bits of the CPU", "[cuda]") {
  generator a(5), b(5);
  const auto same = [](const auto& there, const auto& host) { CHECK(distance(there, host) == 0); };
  for (const index_t n : {1, 3, 4, 77, 1001}) {
    same(rand<float, g0>(b, {n}), rand<float>(a, {n}));
    same(uniform<float, g0>(b, -1, 3, {n}), uniform<float>(a, -1, 3, {n}));
    same(rand<double, g0>(b, {n}), rand<double>(a, {n}));
    same(randint<int, g0>(b, -5, 1000, {n}), randint<int>(a, -5, 1000, {n}));
    same(bernoulli<float, g0>(b, 0.3, {n}), bernoulli<float>(a, 0.3, {n}));
    CHECK(distance(randn<float, g0>(b, {n}), randn<float>(a, {n})) < 1e-6);
    CHECK(distance(randn<double, g0>(b, {n}), randn<double>(a, {n})) < 1e-14);
    CHECK(distance(eval(cast<float>(rand<sinter::half, g0>(b, {n}))), eval(cast<float>(rand<sinter::half>(a, {n})))) ==
          0);
  }
  const auto drop = [&](const tensor<float, 2>& x, const auto& f) {
    const variable host = x.clone();
    const variable there = x.to<g0>();
    const variable y = dropout(f(host), 0.4, a);
    const variable z = dropout(f(there), 0.4, b);
    same(z.value(), y.value());
    y.backward(ones_like(y.value()));
    z.backward(ones_like(z.value()));
    same(there.grad(), host.grad());
  };
  for (const index_t n : {16, 17, 40}) {  // chunks that begin anywhere among the numbers, where rows cannot be joined
    const auto x = numbers({33, n}, 1);
    drop(x, [](const auto& v) { return v * 2; });
    drop(x, [](const auto& v) { return v.transpose() * 2; });
    drop(x, [n](const auto& v) { return v.slice(1, 1, n) * 2; });
  }
}

TEST_CASE("memory on a GPU is counted, cached and limited", "[cuda]") {
  const auto before = memory<g1>();
  {
    const auto x = zeros<float, g1>({1000});
    CHECK(memory<g1>().bytes_in_use >= before.bytes_in_use + 4000);
  }
  CHECK(memory<g1>().bytes_in_use == before.bytes_in_use);
  set_memory_limit<g1>(1 << 20);
  CHECK_THROWS_WITH((zeros<float, g1>({1 << 20})), Catch::Contains("cuda:1"));
  const auto x = full<float, g1>({10}, 2);
  CHECK(eval(sum(x)).item() == 20);
  set_memory_limit<g1>(0);
}

TEST_CASE("creation, copies and items", "[cuda]") {
  CHECK(distance(arange<float, g0>(7), arange<float>(7)) <= compare::rounding);
  CHECK(distance(eye<double, g0>(3), eye<double>(3)) <= compare::rounding);
  const auto x = numbers({4, 6}, 1);
  const auto there = x.to<g0>();
  CHECK(distance(there.transpose().to<g1>(), x.transpose()) <= compare::rounding);
  auto target = zeros<float, g0>({6, 4});
  copy(x.transpose(), target);
  CHECK(distance(target, x.transpose()) <= compare::rounding);
  CHECK(eval(max(there)).item() == eval(max(x)).item());
  CHECK(distance(there.slice(0, 1, 3).clone(), x.slice(0, 1, 3)) <= compare::rounding);
  CHECK(there.to_async<cpu>().get()(3, 5) == x(3, 5));
}

namespace {

/// Parameters of many shapes after three steps on D, and, on a GPU, the kernels of the last.
template <device D, class Optimizer, class Options>
std::vector<tensor<float, 1>> stepped(const Options& options, std::size_t* kernels = nullptr) {
  std::vector<variable<float, 1, D>> parameters;
  for (int i = 0; i < 70; ++i) parameters.push_back(variable(numbers({i < 60 ? i + 1 : 5000}, i).template to<D>()));
  const auto block = numbers({30}, 90).to<D>();
  parameters.push_back(variable(block.slice(0, 3, 20)));  // off the alignment
  Optimizer optimizer(parameters, options);
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (p != 5)
        parameters[p].backward(numbers({parameters[p].numel()}, static_cast<int>(p) + 100 * i).template to<D>());
    if constexpr (is_cuda_v<D>) *kernels = launches<D>();
    optimizer.step();
    if constexpr (is_cuda_v<D>) *kernels = launches<D>() - *kernels;
  }
  std::vector<tensor<float, 1>> values;
  for (const auto& p : parameters) values.push_back(p.value().template to<cpu>());
  return values;
}

template <class Optimizer, class Options>
void check_step(const Options& options, std::size_t expected) {
  std::size_t kernels = 0;
  const auto host = stepped<cpu, Optimizer>(options), there = stepped<g0, Optimizer>(options, &kernels);
  CHECK(kernels == expected);  // 64 parameters at a time
  double worst = 0;
  for (std::size_t i = 0; i < host.size(); ++i) worst = std::fmax(worst, distance(there[i], host[i]));
  CHECK(worst < 1e-5);
}

}  // namespace

TEST_CASE("the step of an optimizer is one kernel for many parameters", "[cuda]") {
  check_step<optim::sgd>(optim::sgd::options_type{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}, 2);
  check_step<optim::adamw>(optim::adamw::options_type{.lr = 0.01}, 4);  // which counts its steps on the GPU
}

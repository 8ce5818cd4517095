// tests/parallel/checkpoint_test.cpp: a function that runs again in backward gives what it gives when it runs once.
#include <thread>

#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return static_cast<double>(max(abs(a - b)).item());
}

/// With dropout twice and running moments.
auto network(std::uint64_t seed) {
  generator gen(seed);
  return nn::sequential{nn::linear<double>(6, 5, gen), nn::batch_norm1d<double>(5),   nn::tanh(),
                        nn::dropout(0.4, gen),         nn::linear<double>(5, 3, gen), nn::dropout(0.2, gen)};
}

template <class A, class B>
void same_gradients(const A& a, const B& b) {
  std::vector<tensor<double, 1>> left, right;
  a.for_each_parameter([&](const auto&, const auto& p) { left.push_back(p.grad().flatten()); });
  b.for_each_parameter([&](const auto&, const auto& p) { right.push_back(p.grad().flatten()); });
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(distance(left[i], right[i]) == 0);
}
template <class A, class B>
void same_buffers(const A& a, const B& b) {
  std::vector<double> left, right;
  a.for_each_buffer([&](const auto&, const auto& p) { left.push_back(eval(sum(cast<double>(p.value()))).item()); });
  b.for_each_buffer([&](const auto&, const auto& p) { right.push_back(eval(sum(cast<double>(p.value()))).item()); });
  CHECK(left == right);
}

}  // namespace

TEST_CASE("a checkpointed module has the values, gradients, draws and moments of the module", "[parallel]") {
  const auto plainly = network(1);
  const auto again = nn::checkpointed(network(1));
  optim::sgd step_one(plainly, {.lr = 0.1}), step_two(again, {.lr = 0.1});
  generator gen(7);
  for (int step = 0; step < 3; ++step) {
    const tensor data = randn<double>(gen, {4, 6});
    const variable x = data.clone(), z = data.clone();
    const samples_from of_batch(step, 1 + step);  // where the draws of this forward start
    const variable y = plainly(x);
    const variable w = again(z);
    CHECK(distance(y.value(), w.value()) == 0);
    same_buffers(plainly, again);
    {
      const samples_from elsewhere(100);
      sum(square(y)).backward();
      sum(square(w)).backward();
    }
    CHECK(distance(x.grad(), z.grad()) == 0);
    same_gradients(plainly, again);
    same_buffers(plainly, again);
    step_one.step();
    step_two.step();
    plainly.zero_grad();
    again.zero_grad();
  }
}

TEST_CASE("a checkpointed function gives gradients to what it captures", "[parallel]") {
  generator gen(2);
  const variable w = randn<double>(gen, {3, 3}), v = randn<double>(gen, {3, 3}), x = randn<double>(gen, {3, 3});
  const auto loss_of = [&](bool again) {
    const variable h = tanh(matmul(v, x));  // inside the graph, and used outside of the function too
    const auto f = [&w, h](const auto& a, const auto& b) { return matmul(tanh(matmul(a, w) * h), b) + h; };
    const variable y = again ? variable(checkpoint(f, x * 2, w)) : variable(f(variable(x * 2), w));
    return variable(sum(square(y)) + sum(h * w));
  };
  const auto gradients = [&](bool again) {
    for (const auto* p : {&w, &v, &x}) p->zero_grad();
    loss_of(again).backward();
    return std::vector{w.grad(), v.grad(), x.grad()};
  };
  const auto expected = gradients(false), given = gradients(true);
  for (std::size_t i = 0; i < 3; ++i) CHECK(distance(expected[i], given[i]) < 1e-13);

  x.zero_grad();
  const variable same = checkpoint([](const auto& a) { return a; }, x * 3);
  variable(sum(same)).backward();
  CHECK(distance(x.grad(), full<double>({3, 3}, 3.)) == 0);
}

TEST_CASE("checkpoints stand inside one another, under any_module, in lists and in replicas", "[parallel]") {
  const tensor data = ones<double>({5, 6});
  const auto gradients_of = [&](const auto& model) {
    const variable x = data.clone();
    const variable y = model(x);
    sum(square(y)).backward();
    std::vector<tensor<double, 1>> all{x.grad().flatten()};
    model.for_each_parameter([&](const auto&, const auto& p) { all.push_back(p.grad().flatten()); });
    return all;
  };
  const auto blocks = [](auto wrap) {
    generator gen(4);
    const auto block = [&](index_t in, index_t out) {
      return wrap(nn::sequential{nn::linear<double>(in, out, gen), nn::tanh(), nn::dropout(0.3, gen)});
    };
    return nn::sequential{block(6, 7), block(7, 7), block(7, 3)};
  };
  const auto as_it_is = [](auto m) { return m; };
  const auto again = [](auto m) { return nn::checkpointed(m); };
  const auto twice = [](auto m) { return nn::checkpointed(nn::checkpointed(m)); };
  using any = nn::any_module<double, 2>;
  const auto expected = gradients_of(blocks(as_it_is));
  const auto check = [&](const auto& model) {
    const auto given = gradients_of(model);
    REQUIRE(given.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(distance(given[i], expected[i]) < 1e-13);
  };
  check(blocks(again));
  check(nn::checkpointed(blocks(again)));
  check(nn::checkpointed(blocks(twice)));
  check(nn::checkpointed(blocks([](auto m) { return nn::checkpointed(any(m)); })));
  check(blocks([](auto m) { return any(nn::checkpointed(m)); }));
  check(nn::data_parallel<d0, d1>(nn::checkpointed(blocks(again))));
  check(nn::checkpointed(nn::data_parallel<d0, d1>(blocks(as_it_is))));

  const auto plainly = blocks(as_it_is);
  const auto wrapped = nn::checkpointed(blocks(again));
  const auto names = [](const auto& m) {
    std::vector<std::string> list;
    for (const auto& p : m.named_parameters()) list.push_back(p.name);
    return list;
  };
  CHECK(names(wrapped) == names(plainly));
  CHECK(distance(infer(wrapped)(data), infer(plainly)(data)) == 0);
}

TEST_CASE("running moments of replicas inside a checkpoint move once", "[parallel]") {
  const nn::sequential plainly{nn::data_parallel<d0, d1>(network(2))};
  const nn::sequential again{nn::checkpointed(nn::data_parallel<d0, d1>(network(2)))};
  for (int step = 0; step < 2; ++step) {
    generator gen(static_cast<std::uint64_t>(step));
    const tensor x = randn<double>(gen, {8, 6});
    variable(sum(square(plainly(x)))).backward();
    variable(sum(square(again(x)))).backward();
    same_gradients(plainly, again);
    same_buffers(plainly, again);
  }
}

TEST_CASE("what a checkpoint reads must be as it was", "[parallel]") {
  auto model = nn::checkpointed(network(1));
  const auto& m = model.module;
  const variable x = ones<double>({4, 6});
  const auto fails = [&](const auto& y, const char* text) {
    CHECK_THROWS_WITH(variable(sum(y)).backward(), Catch::Contains(text));
    CHECK_FALSE(m.get<4>().bias.has_grad());
  };
  const variable y = model(x);
  m.get<4>().bias.value() += 1;
  fails(y, "parameter '4.bias' was modified in place");
  const variable z = model(x);
  x.value() += 1;
  fails(z, "operand 1 of shape (4, 6) was modified");
  model.eval();
  const variable u = model(x);
  m.get<1>().running_mean.value() += 1;
  fails(u, "a buffer of shape (5,)");
  variable late = ones<double>({4, 6});
  const variable v = checkpoint([&](const auto& a) { return a * late; }, x);
  late = variable(ones<double>({4, 6}));
  fails(v, "made after its call");
  const variable is_late = checkpoint([&](const auto&) { return late; }, x);
  late = variable(ones<double>({4, 6}));
  fails(is_late, "made after its call");
  CHECK_FALSE(late.has_grad());
  variable(sum(late)).backward();
  CHECK(distance(late.grad(), ones<double>({4, 6})) == 0);  // nothing is left of the pass that failed
  index_t n = 4;
  const variable w = checkpoint([&](const auto& a) { return a.slice(0, 0, n); }, x);
  n = 3;
  CHECK_THROWS_AS(variable(sum(w)).backward(), shape_error);
  generator gen(1);
  int draws = 1;
  const auto drawn = [&](const auto& a) {
    variable b = a;
    for (int i = 0; i < draws; ++i) b = dropout(b, 0.5, gen);
    return b;
  };
  const variable t = checkpoint(drawn, x);
  draws = 2;
  CHECK_THROWS_AS(variable(sum(t)).backward(), value_error);
  draws = 1;
  variable(sum(checkpoint(drawn, x))).backward();  // the next step works
  CHECK(x.has_grad());
}

TEST_CASE("a pass that fails behind a checkpoint leaves all gradients as they were", "[parallel]") {
  generator gen(3);
  const nn::linear<double> fc(4, 4, gen);
  const variable x = ones<double>({2, 4});
  bool fail = true;
  const auto stop = with_gradient([](const auto& a) { return a * 2; },
                                  [&](const auto& g) {
                                    if (fail) throw value_error("stop");
                                    return g * 2;
                                  });
  const auto loss_of = [&] { return variable(sum(checkpoint(fc, stop(checkpoint(fc, x))))); };
  loss_of();
  CHECK_THROWS_AS(loss_of().backward(), value_error);
  CHECK_FALSE(fc.weight.has_grad());
  fail = false;
  loss_of().backward();
  const tensor given = fc.weight.grad().clone();
  fc.zero_grad();
  variable(sum(fc(stop(fc(x))))).backward();
  CHECK(distance(given, fc.weight.grad()) < 1e-13);
}

TEST_CASE("operands of a checkpoint lie on another device until backward", "[parallel]") {
  generator gen(5);
  const index_t n = 8;
  const auto block = [&] {
    return nn::sequential{nn::linear<double, d0>(n, n, gen), nn::tanh(), nn::linear<double, d0>(n, n, gen), nn::tanh()};
  };
  const auto a = block(), b = block(), c = block(), d = block();
  const tensor data = randn<double, d0>(gen, {4096, n});
  const auto peak = [&](const auto& model) {
    const variable x = data.clone();
    reset_peak_memory<d0>();
    const auto before = memory<d0>().bytes_in_use;
    const variable loss = sum(square(model(x)));
    loss.backward();
    const auto bytes = memory<d0>().peak_bytes - before;
    const tensor g = a.template get<0>().weight.grad().clone();
    model.zero_grad();
    return std::pair(bytes, g);
  };
  const auto keep = [](const auto&... m) { return nn::sequential{nn::checkpointed(m)...}; };
  const auto move = [](const auto&... m) { return nn::sequential{nn::checkpointed<cpu>(m)...}; };
  const auto plainly = peak(nn::sequential{a, b, c, d}), kept = peak(keep(a, b, c, d)), moved = peak(move(a, b, c, d));
  CHECK(distance(plainly.second, kept.second) == 0);
  CHECK(distance(plainly.second, moved.second) == 0);
  CHECK(kept.first < plainly.first);
  CHECK(moved.first < kept.first);
}

TEST_CASE("a checkpoint walks back on another thread, twice where the graph is kept, and not under no_grad",
          "[parallel]") {
  const auto model = nn::checkpointed(network(6));
  const variable x = ones<double>({4, 6});
  const variable y = sum(square(model(x)));
  tensor<double, 2> first;
  std::thread([&] {
    const no_grad guard;  // of the thread, not of the call
    y.backward({.retain_graph = true});
    first = x.grad().clone();
    y.backward();
  }).join();
  CHECK(distance(x.grad(), eval(first * 2)) < 1e-13);
  CHECK_THROWS_AS(y.backward(), autograd_error);
  const no_grad guard;
  const variable z = model(x);
  CHECK_THROWS_AS(variable(sum(z)).backward(), autograd_error);
}

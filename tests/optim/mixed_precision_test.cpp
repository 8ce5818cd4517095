// tests/optim/mixed_precision_test.cpp: half and bfloat16 parameters follow a float run, step for step.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

const auto infinity = std::numeric_limits<float>::infinity();

/// What an optimizer keeps under a name for a parameter, in the order of its memory.
template <class Optimizer>
std::vector<float> kept(const Optimizer& optimizer, const std::string& name) {
  std::vector<float> all;
  for (const auto& m : optimizer.saved_members())
    if (const auto value = m.name == name ? optimizer.saved_value(m) : std::nullopt; value) {
      all.resize((value->bytes.size() + 3) / sizeof(float));
      std::memcpy(all.data(), value->bytes.data(), value->bytes.size());
    }
  return all;
}
template <class T, int R, device D>
std::vector<float> in_memory(const variable<T, R, D>& v) {
  const auto values = sinter::detail::access::in_memory_order(v.value()).template to<cpu>();
  std::vector<float> all;
  for (index_t i = 0; i < values.numel(); ++i) all.push_back(static_cast<float>(values(i)));
  return all;
}

/// Numbers that half and bfloat16 hold.
template <class T>
T short_number(index_t i) {
  return static_cast<T>(static_cast<float>((i * 37) % 19 - 9) / 16);
}

/// Values and gradients that T holds, too: then masters are the parameters of the float run, to the last bit.
template <class Optimizer, class T, device D = cpu>
void follow(const std::string& name, const typename Optimizer::options_type& options) {
  for (const bool by_columns : {false, true}) {
    INFO(name << (by_columns ? ", transposed in memory" : ""));
    const auto start = [&](auto zero) {
      using U = decltype(zero);
      auto values = tensor<U, 2>::uninitialized({{by_columns ? 5 : 3, by_columns ? 3 : 5}});
      if (by_columns) values = values.transpose();
      for (index_t i = 0; i < 15; ++i) values(i / 5, i % 5) = short_number<U>(i + 1);
      return variable<U, 2, D>(values.template to<D>());
    };
    const auto step = [&](auto& optimizer, const auto& w, index_t t) {
      using U = element_of<decltype(w)>;
      auto g = tensor<U, 2>::uninitialized({{3, 5}});
      for (index_t i = 0; i < 15; ++i) g(i / 5, i % 5) = short_number<U>(i + 3 * t);
      set_gradient(w, g.template to<D>());
      optimizer.step();
    };
    const variable<T, 2, D> w = start(T());
    const variable<float, 2, D> wide = start(0.f);
    optim::mixed_precision<Optimizer> policy(w, options, {.init_scale = 1});
    Optimizer optimizer(wide, options);
    for (index_t t = 0; t < 6; ++t) {
      step(policy, w, t);
      step(optimizer, wide, t);
      CHECK(kept(policy, "0.master") == in_memory(wide));
      CHECK(in_memory(w) == in_memory(variable(eval(cast<T>(wide.value())))));
    }
    for (const auto& m : optimizer.saved_members()) CHECK(kept(policy, m.name) == kept(optimizer, m.name));
  }
}

}  // namespace

TEST_CASE("masters go where the float run goes, with every optimizer of the room") {
  follow<optim::sgd, bfloat16>("sgd", {.lr = 1e-4});
  follow<optim::sgd, half>("sgd", {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  follow<optim::adagrad, bfloat16>("adagrad", {.lr = 1e-3, .lr_decay = 0.1});
  follow<optim::adadelta, half>("adadelta", {});
  follow<optim::adam, bfloat16>("adam", {.lr = 1e-4, .weight_decay = 0.1});
  follow<optim::adam, half, numa<1>>("adam on another device", {.lr = 1e-4});
  follow<optim::adamw, half>("adamw", {.lr = 1e-4});
  follow<optim::adamax, bfloat16>("adamax", {.lr = 1e-4});
  follow<optim::nadam, half>("nadam", {.lr = 1e-4});
  follow<optim::radam, bfloat16>("radam", {.lr = 1e-4});
  follow<optim::rmsprop, bfloat16>("rmsprop", {.lr = 1e-4, .momentum = 0.5, .centered = true});
  follow<optim::lamb, bfloat16>("lamb", {.lr = 1e-4});
  follow<optim::lion, half>("lion", {.lr = 1e-4, .weight_decay = 0.1});
  follow<optim::muon, bfloat16>("muon", {.lr = 1e-4});
}

TEST_CASE("steps too small for bfloat16 add up in its masters") {
  const auto network = [](auto zero) {
    using T = decltype(zero);
    generator gen(1);
    const nn::sequential wide{nn::linear<float>(4, 16, gen), nn::tanh(), nn::linear<float>(16, 1, gen)};
    nn::sequential model{nn::linear<T>(4, 16, gen), nn::tanh(), nn::linear<T>(16, 1, gen)};
    nn::load_state(model, nn::state(wide), {.convert = true});
    return model;
  };
  generator gen(2);
  const tensor x = randn(gen, {64, 4});
  const tensor<float, 2> y = sum(x, 1, keepdim) * 0.5f;
  const auto loss_of = [&](const auto& model, auto zero) {
    return mean(square(cast<float>(model(cast<decltype(zero)>(x))) - y));
  };
  const auto train = [&](auto zero, auto make) {
    const auto model = network(zero);
    const auto before = eval(model.template get<0>().weight.value() * 1);
    auto optimizer = make(model);
    for (int i = 0; i < 300; ++i) {
      optimizer.zero_grad();
      if constexpr (requires { optimizer.scaler(); }) optimizer.backward(loss_of(model, zero));
      else variable(loss_of(model, zero)).backward();
      optimizer.step();
    }
    const tensor moved = cast<float>(model.template get<0>().weight.value()) - cast<float>(before);
    return std::pair(tensor(abs(moved).max()).item(), tensor(loss_of(infer(model), zero)).item());
  };
  const optim::sgd_options options{.lr = 3e-4};
  const auto plain = [&](const auto& m) { return optim::sgd(m, options); };
  const auto policy = [&](const auto& m) { return optim::mixed_precision<optim::sgd>(m, options); };
  const float start = tensor(loss_of(infer(network(0.f)), 0.f)).item();
  const auto [moved, wide] = train(0.f, plain);
  const auto [moved_plain, loss_plain] = train(bfloat16(), plain);
  const auto [moved_policy, loss_policy] = train(bfloat16(), policy);
  CHECK(moved > 0.01);
  CHECK(wide < 0.9f * start);
  CHECK(moved_plain < 0.1 * moved);
  CHECK(loss_policy == Approx(wide).epsilon(0.01));
  CHECK(std::abs(moved_policy - moved) < 0.1 * moved);
  CHECK(std::abs(loss_plain - wide) > 3 * std::abs(loss_policy - wide));
}

namespace {

constexpr double gradient_of(int t, int i) { return (1 + i / 10.0) / (1 + t); }
tensor<float, 1> given_gradient(int t) {
  auto g = tensor<float, 1>::uninitialized({{5}});
  for (int i = 0; i < 5; ++i) g(i) = static_cast<float>(gradient_of(t, i) * std::cos(3 * t + i));
  return g;
}
/// Numbers from sin(1 + first) on, times a factor.
template <class T, int R>
variable<T, R> sines(const extents<R>& shape, index_t first = 0, float factor = 1) {
  auto values = tensor<float, R>::uninitialized(shape);
  for (index_t i = 0; i < values.numel(); ++i) values.data()[i] = factor * std::sin(static_cast<float>(first + i + 1));
  return eval(cast<T>(values));
}

}  // namespace

TEST_CASE("masters, scales and skipped steps are those of PyTorch, whose masters are kept by hand") {
  const auto rows = table("mixed.csv");
  const auto compare = [](const std::vector<float>& got, const std::vector<double>& expected, std::size_t from) {
    for (std::size_t i = 0; i < 5; ++i) CHECK(got.at(i) == Approx(expected.at(from + i)).epsilon(1e-6));
  };
  {
    const auto w = sines<bfloat16>(extents<1>{{5}});
    optim::mixed_precision<optim::adamw> policy(w, {.lr = 0.001});
    for (int t = 0; t < 10; ++t) {
      set_gradient(w, eval(cast<bfloat16>(given_gradient(t))));
      CHECK(policy.step());
      compare(kept(policy, "0.master"), rows.at("adamw_bfloat16"), static_cast<std::size_t>(5 * t));
    }
    CHECK(policy.scaler().get_scale() == 1);
  }
  const auto w = sines<half>(extents<1>{{5}});
  optim::mixed_precision<optim::sgd> policy(w, {.lr = 0.001}, {.init_scale = 0x1p17, .growth_interval = 3});
  for (int t = 0; t < 10; ++t) {
    const auto at = static_cast<std::size_t>(7 * t);
    const std::vector<double>& expected = rows.at("sgd_half");
    policy.zero_grad();
    policy.backward(sum(cast<float>(w) * given_gradient(t)) * (t == 4 ? 8 : 1));
    const auto before = in_memory(w);
    const bool taken = policy.step();
    CHECK(taken == (expected[at + 6] == 1));
    CHECK(policy.scaler().get_scale() == expected[at + 5]);
    if (!taken) CHECK(in_memory(w) == before);
    if (t > 0) compare(kept(policy, "0.master"), expected, at);
  }
}

TEST_CASE("a network in bfloat16 with masters learns as PyTorch's") {
  const std::vector<double> expected = table("mixed.csv").at("network");
  const auto w1 = sines<bfloat16>(extents<2>{{8, 3}}, 0, 0.5f), w2 = sines<bfloat16>(extents<2>{{1, 8}}, 32, 0.5f);
  const auto b1 = sines<bfloat16>(extents<1>{{8}}, 24, 0.5f), b2 = sines<bfloat16>(extents<1>{{1}}, 40, 0.5f);
  optim::mixed_precision<optim::sgd> policy(std::vector{w1, w2}, {.lr = 0.02, .momentum = 0.9});
  policy.add(std::vector{b1, b2});
  tensor<float, 2> x = zeros<float>({16, 3});
  for (int i = 0; i < 48; ++i) x.data()[i] = std::cos(static_cast<float>(i));
  const tensor<float, 2> y = sum(x, 1, keepdim) / 2;
  for (const double loss_there : expected) {
    const variable hidden = tanh(linear(cast<bfloat16>(x), w1, b1));
    const variable loss = mean(square(cast<float>(linear(hidden, w2, b2)) - y));
    CHECK(static_cast<double>(loss.item()) == Approx(loss_there).epsilon(0.01).margin(0.003));
    policy.zero_grad();
    policy.backward(loss);
    CHECK(policy.step());
  }
}

TEST_CASE("half scales the loss, without being asked; an overflow is skipped and the scale halved") {
  const variable<half, 1> w = full<half>({2}, 2);
  const variable<bfloat16, 1> other = full<bfloat16>({2}, 2);
  optim::mixed_precision<optim::adam> policy(other, {.lr = 1e-4});
  CHECK(policy.scaler().get_scale() == 1);
  policy.add(w);
  CHECK(policy.scaler().get_scale() == 65536);
  const auto step = [&] {
    policy.zero_grad();
    policy.backward(mean(square(w - 1)) + cast<half>(mean(square(other - 1))));  // 65536 is too large for a half
    return policy.step();
  };
  CHECK_FALSE(step());
  CHECK(policy.scaler().get_scale() == 32768);
  CHECK(kept(policy, "0.master").empty());
  CHECK(step());
  CHECK(w(0) == 2);  // the half below it is 1 / 1024 away
  CHECK(kept(policy, "1.master")[0] == Approx(2 - 1e-4).epsilon(1e-6));
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    const auto before = kept(policy, "1.m");
    set_gradient(w, tensor<half, 1>{1, bad});
    CHECK_FALSE(policy.step());
    CHECK(kept(policy, "1.m") == before);
  }
  CHECK(policy.scaler().get_scale() == 4096);

  optim::mixed_precision<optim::sgd> narrow(other, {.lr = 1}), off(w, {.lr = 1}, {.enabled = false});
  set_gradient(other, tensor<bfloat16, 1>{1, infinity});
  CHECK_FALSE(narrow.step());
  CHECK(narrow.scaler().get_scale() == 1);
  CHECK(other(0) == 2);
  set_gradient(w, tensor<half, 1>{1, infinity});
  CHECK(off.step());
  CHECK(w(0) == 1);
  CHECK(static_cast<float>(w(1)) == -infinity);
}

TEST_CASE("a small gradient of half survives, and so does a step that half cannot hold") {
  const variable<half, 1> w = ones<half>({1});
  optim::mixed_precision<optim::sgd> policy(w, {.lr = 1000}, {.init_scale = 32768});
  for (int i = 0; i < 100; ++i) {
    policy.zero_grad();
    policy.backward(sum(cast<float>(w)) * 1e-8f);  // a half is 6e-8 or more
    policy.step();
  }
  CHECK(static_cast<float>(w(0)) == Approx(0.999).epsilon(1e-4));
  CHECK(kept(policy, "0.master")[0] == Approx(0.999).epsilon(1e-5));
}

TEST_CASE("a parameter that was changed since counts with its new value, where it was") {
  const variable<bfloat16, 1> w = ones<bfloat16>({2});
  optim::mixed_precision<optim::sgd> policy(w, {.lr = 1e-4});
  const auto step = [&] {
    set_gradient(w, ones<bfloat16>({2}));
    policy.step();
  };
  step();
  w.value()(1) = bfloat16(5);
  step();
  CHECK(kept(policy, "0.master")[0] == 1 - 1e-4f - 1e-4f);
  CHECK(kept(policy, "0.master")[1] == 5 - 1e-4f);
}

TEST_CASE("groups, rates, only() and clipping are those of the optimizer, without the scale") {
  generator gen(1);
  const nn::sequential model{nn::linear<half>(3, 4, gen), nn::linear<half>(4, 2, gen)};
  const auto is_vector = [](const nn::parameter_info& p) { return p.shape.size() < 2; };
  optim::mixed_precision<optim::adamw> policy(model, {.lr = 0.5}, {.init_scale = 1024});
  policy.add_param_group(optim::only(model, is_vector), [](auto& o) { o.lr = 0.25; });
  optim::lr_scheduler scheduler(policy, optim::step_lr{.every = 1});
  scheduler.step();
  CHECK(policy.lr(1) == Approx(0.025));
  CHECK(policy.size() == 4);

  policy.backward(sum(model(ones<half>({1, 3}))));
  const double norm = policy.clip_grad_norm(model, 0.5);
  CHECK(norm > 2);
  CHECK(optim::clip_grad_norm(model, 1e9).item() == Approx(512).epsilon(1e-3));
  auto moved = std::move(policy);
  CHECK(moved.step());
  CHECK(moved.scaler().get_scale() == 1024);
  CHECK_THROWS_WITH(optim::mixed_precision<optim::muon>(model), Contains("give muon the matrices"));
  CHECK_THROWS_WITH(optim::mixed_precision<optim::sgd>(model, {.lr = -1}), Contains("the learning rate"));
  CHECK_THROWS_WITH(optim::mixed_precision<optim::sgd>(model, {}, {.init_scale = 0}),
                    Contains("scale must be positive"));
}

TEST_CASE("rows of a table have masters; those that are not looked up stay") {
  const auto follow = [](auto zero, auto make) {
    using T = decltype(zero);
    const variable<T, 2> table = row_sparse(full<T>({6, 2}, 1));
    auto optimizer = make(table);
    for (int i = 0; i < 8; ++i) {
      optimizer.zero_grad();
      const tensor<std::int64_t, 1> ids{1, 4, i % 2 == 0 ? 4 : 2};
      variable(sum(embedding(ids, table))).backward();
      optimizer.step();
    }
    return std::pair(in_memory(table), kept(optimizer, "0.master"));
  };
  const auto check = [](const auto& wide, const auto& narrow) {
    for (std::size_t i = 0; i < wide.first.size(); ++i) {
      CHECK(narrow.first[i] == static_cast<float>(bfloat16(wide.first[i])));
      if (wide.first[i] != 1) CHECK(narrow.second[i] == wide.first[i]);
    }
    CHECK(wide.first[2] != 1);
    CHECK(wide.first[0] == 1);
  };
  const optim::sgd_options small{.lr = 1e-4};
  check(follow(0.f, [&](const auto& t) { return optim::sgd(t, small); }),
        follow(bfloat16(), [&](const auto& t) { return optim::mixed_precision<optim::sgd>(t, small); }));
  const optim::adagrad_options rate{.lr = 1e-3};
  check(follow(0.f, [&](const auto& t) { return optim::adagrad(t, rate); }),
        follow(bfloat16(), [&](const auto& t) { return optim::mixed_precision<optim::adagrad>(t, rate); }));
  const variable<half, 2> table = row_sparse(zeros<half>({6, 2}));
  CHECK_THROWS_WITH(optim::mixed_precision<optim::adam>(table), Contains("held by rows"));
}

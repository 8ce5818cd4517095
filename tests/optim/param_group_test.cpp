// tests/optim/param_group_test.cpp: groups of parameters with settings of their own.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

/// An optimizer of two groups goes where PyTorch's goes, also if all parameters were in the first group before.
template <class Optimizer, class F>
void follow(const std::string& name, const typename Optimizer::options_type& options, const F& change) {
  const std::vector<double> expected = table("groups.csv").at(name);
  REQUIRE(expected.size() == 70);
  for (const bool moves : {false, true}) {
    INFO(name << (moves ? ", moved" : ", added"));
    variable<double, 1> a = zeros<double>({3}), b = zeros<double>({2});
    for (int i = 0; i < 5; ++i) (i < 3 ? a.value()(i) : b.value()(i - 3)) = std::sin(i + 1);
    Optimizer optimizer(a, options);
    if (moves) optimizer.add(b);
    optimizer.add_param_group(b, change);
    CHECK(optimizer.size() == 2);
    CHECK(optimizer.groups() == 2);
    CHECK(optimizer.group_of(1) == 1);
    optim::lr_scheduler scheduler(optimizer, optim::cosine_lr{8, 0.01});
    for (std::size_t t = 0; t < 10; ++t) {
      const auto g = [t](int i) {
        return (1 + i / 10.0) * std::cos(3 * static_cast<double>(t) + i) / (1. + static_cast<double>(t));
      };
      set_gradient(a, tensor<double, 1>{g(0), g(1), g(2)});
      set_gradient(b, tensor<double, 1>{g(3), g(4)});
      optimizer.step();
      scheduler.step();
      INFO("step " << t);
      for (int i = 0; i < 5; ++i)
        CHECK((i < 3 ? a(i) : b(i - 3)) == Approx(expected[5 * t + static_cast<std::size_t>(i)]).epsilon(1e-12));
      for (std::size_t group = 0; group < 2; ++group)
        CHECK(optimizer.lr(group) == Approx(expected[50 + 2 * t + group]).epsilon(1e-9));
    }
  }
}

}  // namespace

TEST_CASE("groups with settings and rates of their own go where PyTorch's go") {
  follow<optim::sgd>("sgd", {.lr = 0.1, .momentum = 0.9}, [](auto& o) {
    o.lr = 0.3;
    o.weight_decay = 0.1;
  });
  follow<optim::adamw>("adamw", {.lr = 0.05}, [](auto& o) {
    o.lr = 0.02;
    o.weight_decay = 0;
    o.beta1 = 0.5;
    o.beta2 = 0.9;
  });
  follow<optim::rmsprop>("rmsprop", {.lr = 0.02}, [](auto& o) {
    o.momentum = 0.5;
    o.centered = true;
  });
}

TEST_CASE("only() chooses parameters by name and shape, for groups, optimizers and clipping") {
  generator gen(1);
  const nn::sequential model{nn::linear(3, 4, gen), nn::layer_norm(4), nn::linear(4, 2, gen)};
  optim::adamw optimizer(model, {.lr = 0.1, .weight_decay = 0.5});
  const auto is_vector = [](const nn::parameter_info& p) { return p.shape.size() < 2; };
  optimizer.add_param_group(optim::only(model, is_vector), [](auto& o) { o.weight_decay = 0; });
  CHECK(optimizer.size() == 6);
  CHECK(optimizer.options(1).weight_decay == 0);
  CHECK(optimizer.options(1).lr == 0.1);
  CHECK(optimizer.options().weight_decay == 0.5);
  std::string groups;
  for (std::size_t i = 0; i < 6; ++i) groups += std::to_string(optimizer.group_of(i));
  CHECK(groups == "011101");
  const float weight = model.get<0>().weight(0, 0), scale = model.get<1>().weight(0);
  model.for_each_parameter([](const std::string&, const auto& p) { set_gradient(p, zeros_like(p.value())); });
  optimizer.step();
  CHECK(model.get<0>().weight(0, 0) == Approx(weight * 0.95f));
  CHECK(model.get<1>().weight(0) == scale);

  const auto is_last = [](const nn::parameter_info& p) { return p.name.starts_with("2."); };
  optim::sgd head(optim::only(model, is_last), {.lr = 1});
  CHECK(head.size() == 2);
  CHECK(head.label(1) == "2.bias (2,)");
  model.for_each_parameter([](const std::string&, const auto& p) { set_gradient(p, ones_like(p.value())); });
  CHECK(optim::clip_grad_norm(optim::only(model, is_last), 1).item() == Approx(std::sqrt(10.)));
  CHECK(model.get<2>().bias.grad()(0) == Approx(1 / std::sqrt(10.)));
  CHECK(model.get<1>().bias.grad()(0) == 1);
  CHECK_THROWS_WITH(optim::sgd(optim::only(model, [](const auto& p) { return p.numel > 99; })),
                    Contains("the choice of optim::only() is empty"));
}

TEST_CASE("rates of groups: one, all, on a plateau, and of a group that comes after the scheduler") {
  const variable<float, 1> a = zeros<float>({1}), b = zeros<float>({1}), c = zeros<float>({1});
  optim::sgd optimizer(a, {.lr = 1});
  optimizer.add_param_group(b, [](auto& o) { o.lr = 0.01; });
  optimizer.set_lr(0.02, 1);
  CHECK(optimizer.lr() == 1);
  CHECK(optimizer.lr(1) == 0.02);
  optim::reduce_on_plateau plateau(optimizer, {.patience = 0, .least = 0.005});
  plateau.step(1);
  plateau.step(1);
  CHECK(optimizer.lr() == Approx(0.1));
  CHECK(optimizer.lr(1) == 0.005);
  optim::lr_scheduler scheduler(optimizer, optim::exponential_lr{0.5});
  optimizer.add_param_group(c, [](auto& o) { o.lr = 7; });
  scheduler.step();
  CHECK(optimizer.lr(0) == Approx(0.05));
  CHECK(optimizer.lr(1) == Approx(0.0025));
  CHECK(optimizer.lr(2) == 7);
  CHECK(scheduler.base_lr(1) == 0.005);
  optimizer.set_lr(0.5);
  for (std::size_t group = 0; group < 3; ++group) CHECK(optimizer.lr(group) == 0.5);
  // A schedule that fails for one group changes none.
  const auto above_two = [](double base, index_t epoch) { return epoch == 0 || base > 2 ? base : -1.0; };
  optimizer.set_lr(3, 0);
  optim::lr_scheduler failing(optimizer, above_two);
  CHECK_THROWS_AS(failing.step(), value_error);
  CHECK(optimizer.lr() == 3);
  CHECK(failing.epoch() == 0);
}

TEST_CASE("a group that is refused changes nothing") {
  const variable<float, 1> a = ones<float>({2}), b = ones<float>({2});
  const variable<float, 1> result = a * 2;
  optim::sgd optimizer(a, {.lr = 0.5});
  CHECK_THROWS_WITH(optimizer.add_param_group(b, [](auto& o) { o.momentum = -1; }), Contains("sgd: momentum"));
  CHECK_THROWS_AS(optimizer.add_param_group(b, [](auto& o) { o.lr = NAN; }), value_error);
  CHECK_THROWS_WITH(optimizer.add_param_group(std::vector{a, b, result}, [](auto& o) { o.lr = 9; }),
                    Contains("result of a statement"));
  CHECK_THROWS_WITH(optimizer.add_param_group(std::vector<variable<float, 1>>(), [](auto&) {}),
                    Contains("no tracked parameters"));
  CHECK_THROWS_WITH(optimizer.add(std::vector{a, b, result}), Contains("result of a statement"));
  CHECK_THROWS_WITH(optimizer.add(optim::only(b, [](const auto&) { return false; })), Contains("only() is empty"));
  CHECK(optimizer.size() == 1);
  CHECK(optimizer.groups() == 1);
  CHECK(optimizer.group_of(0) == 0);
  CHECK_THROWS_WITH(optimizer.lr(1), Contains("group 1 of 1 group"));
  CHECK_THROWS_AS(optimizer.set_lr(0.1, 1), index_error);
  CHECK_THROWS_AS(optimizer.options(1), index_error);
  optimizer.add_param_group(b, [](auto& o) { o.lr = 0.25; });  // b is as new
  for (const auto& v : {a, b}) set_gradient(v, ones<float>({2}));
  optimizer.step();
  CHECK(a(0) == 0.5f);
  CHECK(b(0) == 0.75f);

  generator gen(1);
  nn::embedding table(5, 2, gen, {.sparse = true});
  optim::sgd rows(table, {.lr = 0.5});
  CHECK_THROWS_WITH(rows.add_param_group(table, [](auto& o) { o.momentum = 0.9; }), Contains("row-sparse"));
  CHECK(rows.groups() == 1);
}

// tests/parallel/split_linear_test.cpp: columns over devices give what one device gives.
#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return a.numel() == 0 ? 0 : static_cast<double>(max(abs(a - b)).item());
}

/// Both trained three steps on the same batches.
template <class One, class Many, class Input>
void check_training(const One& one, const Many& many, const Input& input) {
  optim::sgd step_one(one, {.lr = 0.1, .momentum = 0.5}), step_many(many, {.lr = 0.1, .momentum = 0.5});
  for (int step = 0; step < 3; ++step) {
    const tensor data = input(step);
    const variable x = data.clone(), z = data.clone();
    const variable y = one(x);
    const variable w = many(z);
    REQUIRE(distance(y.value(), w.value()) < 1e-12);
    step_one.zero_grad();
    step_many.zero_grad();
    variable(sum(square(y))).backward();
    variable(sum(square(w))).backward();
    CHECK(distance(x.grad(), z.grad()) < 1e-12);
    step_one.step();
    step_many.step();
  }
}

}  // namespace

TEST_CASE("columns over devices give the values and gradients of one device", "[parallel]") {
  generator gen(1);
  const auto rows = [](int step) {
    generator of_step(static_cast<std::uint64_t>(step));
    return randn<double>(of_step, {5, 6});
  };
  for (const index_t outputs : {11, 4, 2}) {
    INFO(outputs << " outputs");
    const nn::linear<double> layer(6, outputs, gen);
    const auto many = nn::split_linear<d0, cpu, d1>(layer);
    CHECK(many.part<0>().weight.extent(0) == (outputs + 2) / 3);
    check_training(layer, many, rows);
    CHECK(distance(many.joined().weight.value(), layer.weight.value()) < 1e-12);
    CHECK(distance(many.joined().bias.value(), layer.bias.value()) < 1e-12);
    CHECK(many.parameter_count() == layer.parameter_count());
    CHECK(distance(eval(infer(many)(rows(0))), eval(infer(layer)(rows(0)))) < 1e-12);
  }
  const nn::linear<double, cpu, nn::tracked, false> bare(6, 7, gen, nn::no_bias);
  check_training(bare, nn::split_linear<d1, d0>(bare, {1, 6}), rows);
  const auto tokens = [](int step) {
    generator of_step(static_cast<std::uint64_t>(step));
    return randn<double>(of_step, {2, 3, 6});
  };
  const nn::linear<double> layer(6, 5, gen);
  check_training(layer, nn::split_linear<d1, d0>(layer, {5, 0}), tokens);
}

TEST_CASE("split columns stand between other modules", "[parallel]") {
  generator gen(2);
  const nn::linear<double> first(4, 8, gen), last(8, 3, gen);
  const nn::sequential one{first, nn::tanh(), last, nn::tanh()};
  const auto own = nn::linear<double>(first.to<cpu>());
  const nn::sequential many{nn::split_linear<d0, d1>(first), nn::tanh(),
                            nn::checkpointed(nn::split_linear<d1, cpu, d0>(last)), nn::tanh()};
  check_training(one, many, [](int step) { return eval(ones<double>({3, 4}) * (step + 1)); });
  CHECK(many.named_parameters()[1].name == "0.0.bias");
  CHECK(many.named_parameters()[2].device == device_name<d1>());
  CHECK(distance(eval(many(ones<double>({3, 4}))).value(), eval(one(ones<double>({3, 4}))).value()) < 1e-12);
}

TEST_CASE("errors of split columns name the device and leave gradients as they were", "[parallel]") {
  generator gen(3);
  const nn::linear<double> layer(6, 5, gen);
  const auto many = nn::split_linear<d0, d1>(layer);
  CHECK_THROWS_AS((nn::split_linear<d0, d1>(layer, {2, 2})), value_error);
  CHECK_THROWS_AS((nn::split_linear<d0, d1>(layer, {6, -1})), value_error);
  CHECK_THROWS_AS((nn::split_linear<d0, d1>(layer, {5})), value_error);
  CHECK_THROWS_AS((nn::split_linear<d0, d1>(nn::linear<double>())), value_error);
  CHECK_THROWS_WITH(many(ones<double>({2, 7})), Catch::Contains("split_linear on " + device_name<d0>()));
  const variable x = ones<double>({2, 6});
  const variable y = sum(many(x));
  many.part<1>().weight.value() += 1;
  CHECK_THROWS_WITH(y.backward(), Catch::Contains("backward of split_linear on " + device_name<d1>()));
  CHECK_FALSE(x.has_grad());
  CHECK_FALSE(many.part<0>().bias.has_grad());
  const variable z = sum(many(x));
  z.backward({.retain_graph = true});
  const tensor once = x.grad().clone();
  z.backward();
  CHECK(distance(x.grad(), eval(once * 2)) < 1e-12);
  CHECK(distance(many.part<0>().bias.grad().to<cpu>(), full<double>({3}, 4.)) < 1e-12);
  CHECK_THROWS_AS(z.backward(), autograd_error);
}

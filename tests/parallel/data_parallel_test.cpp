// tests/parallel/data_parallel_test.cpp: replicas over devices give what one device gives.
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return static_cast<double>(max(abs(a - b)).item());
}

auto network(std::uint64_t seed) {
  generator gen(seed);
  return nn::sequential{nn::linear<double>(6, 5, gen), nn::tanh(), nn::dropout(0.4, gen),
                        nn::linear<double>(5, 3, gen)};
}

}  // namespace

TEST_CASE("data_parallel gives the values and gradients of one device, dropout included", "[parallel]") {
  for (const index_t n : {10, 9, 2, 1, 0}) {
    INFO(n << " samples");
    const auto one = network(1);
    const auto many = nn::data_parallel<numa<0>, cpu, numa<1>, numa<2>>(network(1));
    optim::sgd step_one(one, {.lr = 0.1}), step_many(many, {.lr = 0.1});
    generator gen(7);
    for (int step = 0; step < 3; ++step) {
      const tensor data = randn<double>(gen, {n, 6});
      const variable x = data.clone(), z = data.clone();
      const variable y = one(x);
      const variable w = many(z);
      CHECK((n == 0 || distance(y.value(), w.value()) < 1e-12));
      const tensor seed = randn<double>(gen, {n, 3});
      y.backward(seed);
      w.backward(seed);
      if (n == 0) continue;
      CHECK(distance(x.grad(), z.grad()) < 1e-12);
      CHECK(distance(one.get<0>().weight.grad(), many.module.get<0>().weight.grad()) < 1e-12);
      step_one.step();
      step_many.step();
      one.zero_grad();
      many.zero_grad();
    }
  }
}

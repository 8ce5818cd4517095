// tests/gpu/memory_test.cu: running out of a GPU's memory half-way through a step, and going on.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;
using g0 = cuda<0>;

TEST_CASE("a step that runs out of memory leaves the program as it was", "[gpu]") {
  REQUIRE(available<g0>());
  generator gen(1);
  nn::linear<float, g0> layer(64, 64, gen);
  optim::sgd optimizer(layer, {.lr = 0.1});
  const auto x = randn<float>(gen, {32, 64}).to<g0>();
  const tensor before = layer.weight.value().to<cpu>();
  const auto in_use = memory<g0>().bytes_in_use;
  const auto step = [&](index_t copies) {
    const variable y = layer(x);
    const variable wide = y.unsqueeze(0) * ones<float, g0>({copies, 1, 1});
    const variable loss = mean(square(wide));
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
  };
  CHECK_THROWS_AS(step(index_t{1} << 27), out_of_memory);  // 1 TiB
  CHECK(memory<g0>().bytes_in_use == in_use);
  const tensor after = layer.weight.value().to<cpu>();
  CHECK_FALSE(eval(any(after != before)).item());
  CHECK_NOTHROW(step(2));
  synchronize<g0>();
}

TEST_CASE("memory that is freed is used again", "[gpu]") {
  const auto first = memory<g0>().system_allocations;
  for (int i = 0; i < 100; ++i) {
    const auto t = full<float, g0>({1000, 1000}, 1);
    CHECK(eval(sum(t)).item() == 1e6f);
  }
  CHECK(memory<g0>().system_allocations <= first + 4);
  empty_cache<g0>();
  CHECK(memory<g0>().bytes_cached == 0);
}

// tests/docs/inference_test.cpp: the snippets of docs/inference.md, as tests.
#include <cstdio>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

TEST_CASE("docs/inference.md", "[docs]") {
  generator gen(1);
  nn::sequential model(nn::conv2d(3, 16, 3, gen, {.padding = 1}), nn::relu(),
                       nn::conv2d(16, 32, 3, gen, {.padding = 1}), nn::relu(), nn::adaptive_avg_pool2d(1),
                       nn::flatten(), nn::linear(32, 10, gen));
  const tensor picture = randn(gen, {1, 3, 32, 32});

  // [docs:prepare]
  const auto ready = nn::prepare(model);
  tensor scores = ready(picture);  // the first call lays the weights out
  scores = ready(picture);         // the others read them
  // [docs:end]
  CHECK(max_abs_difference(scores, infer(model)(picture)) < 1e-5);

  // [docs:int8]
  const auto small = nn::prepare(model, nn::weight_precision::int8_weights);
  const tensor close = small(picture);
  for (const auto& w : small.weights())
    std::printf("%-10s %8zu bytes, off by %.4f\n", w.name.c_str(), w.bytes, w.error);
  std::printf("scores off by %.4f\n", static_cast<double>(max_abs_difference(close, scores)));
  // [docs:end]
  CHECK(small.weights().size() == 3);
  CHECK(max_abs_difference(close, scores) < 0.02);

  // [docs:run]
  const tensor features = ready.run([&](const auto& view) { return eval(relu(view.template get<0>()(picture))); });
  // [docs:end]
  CHECK(features.shape() == extents<4>{{1, 16, 32, 32}});
}

// tests/docs/data_test.cpp: the snippets of docs/data.md, as tests.
#include <sinter/data.hpp>
#include <sinter/metrics.hpp>
#include <sinter/sinter.hpp>

#include "../catch.hpp"

using namespace sinter;

TEST_CASE("data.md: metrics") {
  generator gen(1);
  const tensor points = randn(gen, {50, 2});
  const tensor labels = eval(cast<std::int64_t>(points.select(1, 0) > 0));
  data_loader loader(tensor_dataset(points, labels), {.batch_size = 16});
  const nn::sequential model{nn::linear(2, 2, gen)};
  double right = 0, f1 = 0, mean_loss = 0;
  // [docs:metrics]
  metrics::accuracy accuracy;
  metrics::confusion_matrix matrix(2);
  metrics::running_mean loss;
  for (auto& [x, y] : loader) {
    tensor scores = infer(model)(x);
    accuracy.add(scores, y);
    matrix.add(scores, y);
    loss.add(eval(cross_entropy(scores, y)).item(), y.size(0));
  }
  right = accuracy.value();
  f1 = matrix.f1(metrics::average::macro);
  mean_loss = loss.value();
  // [docs:end]
  CHECK(right == matrix.accuracy());
  CHECK(f1 <= 1);
  CHECK(mean_loss == Approx(eval(cross_entropy(infer(model)(points), labels)).item()));
}

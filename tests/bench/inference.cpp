// tests/bench/inference.cpp: calls of a model that cmake/onnx_to_sinter.py made: MODEL its name, INPUT the extents of
// its input, TOKENS how many there are where it reads integers. Usage: inference WEIGHTS
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

#include "rows.hpp"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#include TEXT(MODEL.hpp)

using namespace sinter;

int main(int, char** argv) {
  generator gen(1);
  models::MODEL model(gen);
  nn::load(model, argv[1]);
#ifdef TOKENS
  const tensor x = eval(arange<std::int64_t>(128).reshape({1, 128}) * 37 % TOKENS);
#else
  const tensor<float, 4> x = randn(gen, INPUT);
#endif
  const auto view = infer(model);
  const auto ready = nn::prepare(model);
  const auto weights = nn::prepare(model, {.precision = nn::weight_precision::int8_weights});
  const auto numbers = nn::prepare(model, {.precision = nn::weight_precision::int8});
  const auto call = [&x](const auto& f) { return [&x, &f] { const auto y = f(x); }; };
  const auto error = [&](const auto& f) {
    const auto expected = eval(view(x)), y = eval(f(x));
    std::fprintf(stderr, "%.1e ",
                 static_cast<double>(max_abs_difference(y, expected)) / static_cast<double>(max(abs(expected)).item()));
  };
  std::fprintf(stderr, TEXT(MODEL) ": differences from infer, of the largest: ");
  error(ready);
  error(weights);
  error(numbers);
  std::fprintf(stderr, "; bytes kept: %zu %zu %zu\n", ready.bytes(), weights.bytes(), numbers.bytes());
  return serve({{"infer", 3, 0, call(view)},
                {"prepared", 5, 0, call(ready)},
                {"int8_weights", 5, 0, call(weights)},
                {"int8", 5, 0, call(numbers)}});
}

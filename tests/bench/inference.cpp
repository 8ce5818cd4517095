// tests/bench/inference.cpp: calls of a model that cmake/onnx_to_sinter.py made.
//
// inference.py compiles it for each model, with MODEL its name, CALLS how many calls a turn has, INPUT the extents of
// its input, and TOKENS how many there are where it reads integers, beside rows_main.cpp.
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

#include <memory>

#include "rows.hpp"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#include TEXT(MODEL.hpp)

using namespace sinter;

std::vector<row> make_rows(const char* weights_file) {
  generator gen(1);
  const auto model = std::make_shared<models::MODEL<>>(gen);
  nn::load(*model, weights_file);
#ifdef TOKENS
  const tensor x = eval(arange<std::int64_t>(128).reshape({1, 128}) * 37 % TOKENS);
#else
  const tensor<float, 4> x = randn(gen, INPUT);
#endif
  const auto view = infer(*model);
  std::fprintf(stderr, TEXT(MODEL) ": differences from infer, of the largest, and bytes kept:");
  std::vector<row> rows{{"infer", CALLS, 0, [view, x] { const auto y = view(x); }}};
  const auto add = [&](const char* name, nn::weight_precision precision) {
    using prepared = decltype(nn::prepare(*model));
    const auto ready = std::make_shared<prepared>(nn::prepare(*model, {.precision = precision}));
    const auto expected = eval(view(x)), y = eval((*ready)(x));
    const auto error =
        static_cast<double>(max_abs_difference(y, expected)) / static_cast<double>(max(abs(expected)).item());
    std::fprintf(stderr, " %s %.1e %zu", name, error, ready->bytes());
    rows.push_back({name, CALLS, 0, [model, ready, x] { const auto result = (*ready)(x); }});
  };
  add("prepared", nn::weight_precision::full);
  add("int8_weights", nn::weight_precision::int8_weights);
  add("int8", nn::weight_precision::int8);
  std::fprintf(stderr, "\n");
  return rows;
}

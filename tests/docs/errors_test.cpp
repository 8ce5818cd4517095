// tests/docs/errors_test.cpp: docs/errors.md has the words of errors that are thrown.
#include <filesystem>
#include <string>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"
#include "page.hpp"

using namespace sinter;

namespace {

/// The text of what `statement` throws stands on the page, or that of its line `line`.
template <class F>
void stands_there(F statement, std::size_t line = 0) {
  std::string text;
  try {
    statement();
  } catch (const error& e) {
    text = e.what();
  }
  for (; line > 0; --line) text.erase(0, text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  if (const auto out = text.find("the limit is"); out != std::string::npos) text.erase(0, out);
  text.erase(0, text.find_first_not_of(' '));
  CAPTURE(text);
  CHECK(text.size() > 20);
  static const std::string all = page("errors.md");
  CHECK(all.find("`" + text + "`") != std::string::npos);
}

}  // namespace

TEST_CASE("errors: shapes, labels, indices, numbers") {
  generator gen(1);
  const tensor a = ones<float>({2, 3});
  const tensor b = ones<float>({4});
  const tensor c = ones<float>({4, 5});
  const tensor pictures = ones<float>({1, 2, 8, 8});
  const tensor labels = {0, 3};
  const tensor<float, 2> nothing;
  tensor bytes = zeros<std::uint8_t>({2});
  const nn::sequential model{nn::linear(4, 8, gen), nn::relu(), nn::linear(8, 3, gen)};
  const nn::conv2d conv(3, 4, 3, gen);
  nn::batch_norm1d<> norm(3);
  stands_there([&] { eval(a + b); });
  stands_there([&] { eval(matmul(a, c)); });
  stands_there([&] { eval(model(a)); });
  stands_there([&] { eval(conv(pictures)); });
  stands_there([&] { eval(cross_entropy(a, labels)); });
  stands_there([&] { static_cast<void>(a(0, 3)); });
  stands_there([&] { eval(sum(a, 2)); });
  stands_there([&] { static_cast<void>(a.reshape({4, 2})); });
  stands_there([&] { eval(nothing + 1); });
  stands_there([&] { bytes.in_place() = 300; });
  stands_there([&] { eval(norm(a.slice(0, 0, 1))); });
}

TEST_CASE("errors: gradients") {
  const variable w = ones<float>({3});
  variable loss = sum(w * w);
  loss.backward();
  stands_there([&] { loss.backward(); });
  variable losses = w * w;
  stands_there([&] { losses.backward(); });
  variable v = w * 1.f;
  variable later = sum(v * v);
  v.value() += 1;
  stands_there([&] { later.backward(); });
  stands_there([&] { static_cast<void>(v.grad()); });
}

TEST_CASE("errors: files and memory") {
  generator gen(1);
  const auto path = (std::filesystem::temp_directory_path() / "sinter_errors_test.safetensors").string();
  nn::save(nn::sequential{nn::linear(4, 8, gen)}, path);
  nn::sequential wider{nn::linear(4, 9, gen)};
  stands_there([&] { nn::load(wider, path); }, 1);
  std::filesystem::remove(path);
  empty_cache<cpu>();
  set_memory_limit<cpu>(1 << 20);
  stands_there([] { zeros<float>({1000, 1000}); });
  set_memory_limit<cpu>(0);
}

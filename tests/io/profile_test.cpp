// tests/io/profile_test.cpp: what is written down of a program's work.
#include "../catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

const profile_row* find(const std::vector<profile_row>& rows, const std::string& name, const std::string& shape) {
  const auto at =
      std::find_if(rows.begin(), rows.end(), [&](const profile_row& r) { return r.name == name && r.shape == shape; });
  return at != rows.end() ? &*at : nullptr;
}

}  // namespace

TEST_CASE("a profile has a row for each kernel and pass, with its work", "[profile]") {
  generator gen(1);
  const nn::sequential model(nn::conv2d(3, 8, 3, gen, {.padding = 1}), nn::relu(), nn::flatten(),
                             nn::linear(8 * 6 * 6, 10, gen));
  optim::sgd optimizer(model, {.lr = 0.1});
  const tensor x = randn(gen, {4, 3, 6, 6});
  const tensor<std::int64_t, 1> labels = {1, 2, 3, 4};
  profile guard;
  for (int step = 0; step < 3; ++step) {
    variable loss = cross_entropy(model(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  const tensor y = exp(x * 2.f) + 1.f;
  const tensor smaller = exp(x.slice(0, 0, 2) * 2.f) + 1.f;
  const std::vector<profile_row> rows = guard.rows();
  const profile_row* const conv = find(rows, "relu(conv2d)", "(4,8,6,6)");
  REQUIRE(conv != nullptr);
  CHECK(conv->calls == 3);
  CHECK(conv->seconds > 0);
  CHECK(conv->multiply_adds == 3. * 4 * 8 * 36 * 27);
  const profile_row* const product = find(rows, "add(linear)", "(4,10)");
  REQUIRE(product != nullptr);
  CHECK(product->multiply_adds == 3. * 4 * 288 * 10);
  CHECK(product->bytes == 3. * 4 * (4 * 288 + 288 * 10 + 4 * 10));
  const profile_row* const pass = find(rows, "add(exp(multiply))", "(4,3,6,6)");
  REQUIRE(pass != nullptr);
  CHECK(pass->calls == 1);
  CHECK(pass->bytes == 2. * 4 * static_cast<double>(x.numel()));
  const profile_row* const other_shape = find(rows, "add(exp(multiply))", "(2,3,6,6)");
  REQUIRE(other_shape != nullptr);
  CHECK(other_shape->bytes == 4. * static_cast<double>(x.numel()));
  const profile_row* const update = find(rows, "update of parameters", "()");
  REQUIRE(update != nullptr);
  CHECK(update->calls == 3);
  const profile_row* const back = find(rows, "backward of conv2d", "(4,8,6,6)");
  REQUIRE(back != nullptr);
  CHECK(back->multiply_adds == conv->multiply_adds);  // x needs no gradient
  CHECK(std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
  const std::string table = guard.table(2);
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(table.find("rows more") != std::string::npos);
}

TEST_CASE("time inside of other rows counts once", "[profile]") {
  generator gen(2);
  const tensor x = eval(cast<half>(tensor<float, 4>(randn(gen, {8, 8, 200, 200}))));
  const tensor w =
      eval(cast<half>(tensor<float, 4>(randn(gen, {1, 8, 1, 1}))));  // most of it is casts to float and back
  profile guard;
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(eval(conv2d(x, w)));
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::vector<profile_row> rows = guard.rows();
  REQUIRE(rows.size() > 1);
  double sum = 0;
  for (const profile_row& r : rows) {
    CHECK(r.seconds >= 0);
    sum += r.seconds;
  }
  CHECK(sum <= whole);
}

TEST_CASE("work outside of a profile leaves no trace", "[profile]") {
  const tensor a = ones<float>({100});
  {
    profile guard;
    static_cast<void>(eval(a + a));
    guard.stop();
    static_cast<void>(eval(a * a));
    CHECK(guard.rows().size() == 1);
  }
  profile guard;
  CHECK(guard.rows().empty());
}

TEST_CASE("there is one profile at a time", "[profile]") {
  profile guard;
  CHECK_THROWS_AS(profile(), value_error);
  guard.stop();
  CHECK_NOTHROW(profile());
}

TEST_CASE("a trace is a file of JSON with an event for each record of each thread", "[profile]") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_profile_test.json").string();
  {
    profile guard(path);
    const auto work = [] {
      const tensor a = ones<float>({50});
      for (int i = 0; i < 5; ++i) static_cast<void>(eval(a - 1.f));
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(find(guard.rows(), "subtract", "(50)")->calls == 10);
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  std::size_t events = 0;
  for (std::size_t at = text.find("\"ph\":\"X\""); at != std::string::npos; at = text.find("\"ph\":\"X\"", at + 1))
    ++events;
  CHECK(events >= 10);
  CHECK(text.rfind("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", 0) == 0);
  CHECK(text.substr(text.size() - 4) == "\n]}\n");
  CHECK(text.find("{\"name\":\"subtract\",\"cat\":\"forward\",\"ph\":\"X\"") != std::string::npos);
}

TEST_CASE("docs/performance.md", "[profile]") {
  generator gen(3);
  const nn::sequential model(nn::linear(64, 256, gen), nn::relu(), nn::linear(256, 10, gen));
  optim::adam optimizer(model);
  const tensor x = randn(gen, {128, 64});
  const tensor<std::int64_t, 1> labels = eval(arange<std::int64_t>(128) % 10);
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_profile_page.json").string();
  // [docs:profile]
  {
    profile guard(path);
    for (int step = 0; step < 10; ++step) {
      variable loss = cross_entropy(model(x), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::puts(guard.table(6).c_str());
  }  // here the trace is written
  // [docs:end]
  CHECK(std::filesystem::remove(path));
}

TEST_CASE("a file that cannot be made is told before the work", "[profile]") {
  CHECK_THROWS_AS(profile("/nowhere/at/all/trace.json"), io_error);
  CHECK_NOTHROW(profile());
}

// tests/io/model_file_test.cpp: models saved to a safetensors file and loaded from it.
#include <fstream>

#include "../catch.hpp"
#include "folder.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

struct counted : nn::module<counted> {
  nn::linear<float> fc;
  nn::buffer<float, 1> running;
  nn::buffer<std::int64_t, 0> count;
  nn::buffer<bool, 1> used;

  SINTER_MEMBERS(fc, running, count, used);
};

auto make(std::uint64_t seed) {
  generator gen(seed);
  const auto number = static_cast<float>(seed);
  return nn::sequential{counted{{},
                                nn::linear(3, 2, gen),
                                full<float>({2}, number),
                                full<std::int64_t>(static_cast<std::int64_t>(seed)),
                                tensor<bool, 1>{seed == 1, seed != 1}},
                        nn::relu()};
}

bool same_state(const nn::state_dict& a, const nn::state_dict& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const named_tensor& x, const named_tensor& y) {
    return x.name == y.name && x.value.element == y.value.element && x.value.shape == y.value.shape &&
           std::equal(x.value.bytes.begin(), x.value.bytes.end(), y.value.bytes.begin(), y.value.bytes.end());
  });
}

}  // namespace

TEST_CASE("a model with buffers is saved in one call and loaded in one call") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  const auto saved = make(1);
  write_safetensors(path, nn::state(saved), {{"epoch", "3"}});
  for (const bool map : {false, true}) {
    const auto loaded = make(2);
    REQUIRE_FALSE(same_state(nn::state(loaded), nn::state(saved)));
    nn::load_state(loaded, read_safetensors(path, {.map = map}));
    CHECK(same_state(nn::state(loaded), nn::state(saved)));
  }
  CHECK(dir.names() == std::vector<std::string>{"model.safetensors"});  // no temporary file stays
}

TEST_CASE("a loaded model does not share memory with a mapped file") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  write_safetensors(path, nn::state(make(1)));
  const auto loaded = make(2);
  const safetensors file = read_safetensors(path, {.map = true});
  nn::load_state(loaded, file);
  loaded.get<0>().running.value() += 5.f;
  CHECK(file.get<float, 1>("0.running")(0) == 1);
}

TEST_CASE("a file that does not fit the model leaves it as it was, and the error names each entry") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  nn::state_dict entries = nn::state(make(1));
  for (named_tensor& entry : entries) {
    if (entry.name == "0.fc.bias") entry.name = "0.fc.offset";
    if (entry.name == "0.running") entry.value = zeros<float>({5});
    if (entry.name == "0.count") entry.value = full<float>(1.f);
  }
  write_safetensors(path, entries);
  const auto model = make(2);
  const nn::state_dict before = nn::state(model);
  const std::string text =
      message_of<value_error>([&] { nn::load_state(model, read_safetensors(path)); }, "it was loaded");
  CHECK_THAT(text, Contains("'0.fc.bias' is missing in the state") && Contains("'0.fc.offset' is not in the model") &&
                       Contains("'0.running' has shape (5,) in the state and (2,) in the model") &&
                       Contains("'0.count' has elements of type float in the state and int64 in the model"));
  CHECK(same_state(nn::state(model), before));

  write_safetensors(path, nn::state(make(1)));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THROWS_AS(nn::load_state(model, read_safetensors(path)), io_error);
  CHECK(same_state(nn::state(model), before));
}

TEST_CASE("elements of a file are converted on request, unless the model cannot hold a number") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  nn::state_dict entries = nn::state(make(1));
  for (named_tensor& entry : entries)
    if (entry.name == "0.running") entry.value = tensor<double, 1>{0.5, 1e300};
  write_safetensors(path, entries);
  const auto model = make(2);
  const nn::state_dict before = nn::state(model);
  CHECK_THROWS_WITH(nn::load_state(model, read_safetensors(path)), Contains("pass {.convert = true} to convert them"));
  CHECK_THROWS_WITH(
      nn::load_state(model, read_safetensors(path), {.convert = true}),
      Contains("nothing was loaded") && Contains("'0.running' element 1 is 1e+300, which does not fit float"));
  CHECK(same_state(nn::state(model), before));
  for (named_tensor& entry : entries)
    if (entry.name == "0.running") entry.value = tensor<bfloat16, 1>{0.5f, -3};
  write_safetensors(path, entries);
  nn::load_state(model, read_safetensors(path), {.convert = true});
  CHECK(model.get<0>().running.value()(1) == -3);
}

TEST_CASE("elements of types that no tensor has do not load") {
  const folder dir;
  const auto model = make(2);
  nn::state_dict entries = nn::state(make(1));
  const std::uint16_t words[2] = {1, 2};
  for (named_tensor& entry : entries)
    if (entry.name == "0.running") entry.value = {element_kind::uint16, {2}, std::as_bytes(std::span(words))};
  write_safetensors(dir.file("x"), entries);
  CHECK_THROWS_WITH(nn::load_state(model, read_safetensors(dir.file("x")), {.convert = true}),
                    Contains("'0.running' has elements of type uint16 in the state and float in the model"));
}

TEST_CASE("any byte but 0 of a bool in a file is true in the model") {
  const auto model = make(2);
  nn::state_dict entries = nn::state(make(1));
  const std::uint8_t bytes[2] = {7, 0};
  for (named_tensor& entry : entries)
    if (entry.name == "0.used") entry.value.bytes = std::as_bytes(std::span(bytes));
  nn::load_state(model, entries);
  const tensor<bool, 1> used = model.get<0>().used.value();
  std::uint8_t stored = 0;
  std::memcpy(&stored, used.data(), 1);
  CHECK(stored == 1);
  CHECK_FALSE(used(1));
}

TEST_CASE("save and load pass a model through a file, or leave it as it was") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  const auto saved = make(1);
  nn::save(saved, path);
  const auto loaded = make(2);
  nn::load(loaded, path);
  CHECK(same_state(nn::state(loaded), nn::state(saved)));

  generator gen(1);
  const nn::linear wider(3, 5, gen);
  const nn::state_dict before = nn::state(wider);
  CHECK_THROWS_WITH(nn::load(wider, path), Contains("weight"));
  CHECK(same_state(nn::state(wider), before));
  std::ofstream(path, std::ios::binary) << "PK\3\4 and so on, as torch.save begins";
  CHECK_THROWS_WITH(nn::load(wider, path), Contains("torch.save") && Contains("save_file"));
  CHECK_THROWS_WITH(nn::load(wider, dir.file("absent")), Contains("absent"));
  CHECK(same_state(nn::state(wider), before));
}

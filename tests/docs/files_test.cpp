// tests/docs/files_test.cpp: the snippets of docs/files.md, as tests.
#include <filesystem>
#include <string>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

/// A name in the folder for temporary files, where there is nothing when the test ends.
struct temporary {
  std::string path;
  explicit temporary(const std::string& name)
      : path((std::filesystem::temp_directory_path() / ("sinter_files_test_" + name)).string()) {}
  ~temporary() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("files: the weights of a model") {
  const temporary file("model.safetensors");
  const std::string& path = file.path;
  generator gen(1);
  const nn::sequential model{nn::linear(3, 4, gen), nn::relu(), nn::linear(4, 2, gen)};
  // [docs:model]
  nn::save(model, path);
  nn::sequential other{nn::linear(3, 4, gen), nn::relu(), nn::linear(4, 2, gen)};
  nn::load(other, path);
  nn::load(other, path, {.convert = true});  // also from half, bfloat16 or double
  // [docs:end]
  const tensor x = ones<float>({1, 3});
  CHECK(max(abs(eval(other(x)) - eval(model(x)))).item() == 0);
}

TEST_CASE("files: safetensors") {
  const temporary file_name("two.safetensors");
  const std::string& path = file_name.path;
  const tensor<float, 2> w = {{1, 2}, {3, 4}};
  const tensor<bfloat16, 1> b = {0.5f, -1};
  // [docs:safetensors]
  write_safetensors(path, {{"0.weight", w}, {"0.bias", b}}, {{"epoch", "3"}});
  safetensors file = read_safetensors(path);
  std::vector<std::string> names = file.names();   // "0.weight", "0.bias"
  tensor weight = file.get<float, 2>("0.weight");  // float in the file, too
  tensor bias = file.get_as<float, 1>("0.bias");   // from bfloat16
  host_tensor any = file.entry("0.bias").value;    // any.element is element_kind::bfloat16
  // [docs:end]
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias"});
  CHECK(weight(1, 0) == 3);
  CHECK(bias(1) == -1);
  CHECK(any.element == element_kind::bfloat16);
  CHECK(file.metadata().front().second == "3");
}

#if SINTER_WITH_PNG && SINTER_WITH_JPEG
TEST_CASE("files: pictures") {
  const temporary file("photo.jpg");
  const std::string& path = file.path;
  write_jpeg(full<std::uint8_t>({3, 12, 16}, 100), path);
  // [docs:pictures]
  tensor photo = read_image(path);                             // uint8_t (3, 12, 16)
  tensor grey = read_image(path, {.mode = image_mode::gray});  // (1, 12, 16)
  tensor x = eval(cast<float>(photo.unsqueeze(0)) / 255.f);    // (1, 3, 12, 16), from 0 to 1
  write_jpeg(photo.flip(2), path, {.quality = 90});            // mirrored
  // [docs:end]
  CHECK(grey.shape() == extents<3>{{1, 12, 16}});
  CHECK(x.shape() == extents<4>{{1, 3, 12, 16}});
  CHECK(std::abs(read_image(path)(0, 3, 4) - 100) <= 2);
}
#endif

TEST_CASE("files: NumPy") {
  const temporary file("x.npy");
  const std::string& path = file.path;
  // [docs:npy]
  write_npy(path, tensor<double, 1>{0.5, 2});
  tensor x = read_npy<double, 1>(path);
  tensor y = read_npy_as<float, 1>(path);
  // [docs:end]
  CHECK(x(1) == 2);
  CHECK(y(0) == 0.5f);
}

TEST_CASE("files: memory of other libraries") {
  const tensor x = ones<float>({2, 3});
  // [docs:dlpack]
  dlpack::managed_tensor* const given = to_dlpack(x);  // for another library, which ends it
  tensor y = from_dlpack<float, 2>(given);             // from another library, which y ends
  y += 1;                                              // one memory: x is 2 everywhere
  // [docs:end]
  CHECK(x(1, 2) == 2);
}

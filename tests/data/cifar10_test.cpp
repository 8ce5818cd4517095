// tests/data/cifar10_test.cpp: the binary files of CIFAR-10, one or a folder of them, whole and damaged.
#include "../catch.hpp"
#include "../io/folder.hpp"

#include <cstdlib>

#include <sinter/data.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

/// Records of these labels; pixel k of a record with label l is l * 16 + k % 251 modulo 256.
std::string records(std::initializer_list<int> labels) {
  std::string bytes;
  for (const int label : labels) {
    bytes += static_cast<char>(label);
    for (int k = 0; k < 3072; ++k) bytes += static_cast<char>((label * 16 + k % 251) % 256);
  }
  return bytes;
}

int pixel(int label, int channel, int y, int x) { return (label * 16 + ((channel * 32 + y) * 32 + x) % 251) % 256; }

std::string message_of(const std::string& path, const cifar10_options& options = {}) {
  return ::message_of<io_error>([&] { read_cifar10(path, options); }, "no io_error");
}

}  // namespace

TEST_CASE("a file of CIFAR-10 is read as planes and labels") {
  const folder dir;
  const auto set = read_cifar10(dir.file("x.bin", records({3, 9})));
  CHECK(set.size() == 2);
  CHECK(set.inputs.shape() == extents<4>{{2, 3, 32, 32}});
  CHECK(set.targets(0) == 3);
  CHECK(set.targets(1) == 9);
  CHECK(set.inputs(1, 0, 0, 0) == pixel(9, 0, 0, 0));
  CHECK(set.inputs(0, 1, 2, 3) == pixel(3, 1, 2, 3));
  CHECK(set.inputs(1, 2, 31, 31) == pixel(9, 2, 31, 31));
}

TEST_CASE("every .bin of a folder is read, in the order of the names") {
  const folder dir;
  dir.file("data_batch_2.bin", records({2}));
  dir.file("data_batch_1.bin", records({1, 0}));
  dir.file("test_batch.bin", records({7}));
  dir.file("batches.meta.txt", "airplane\n");
  const auto all = read_cifar10(dir.path.string());
  REQUIRE(all.size() == 4);
  for (const auto& [i, label] : {std::pair<index_t, int>{0, 1}, {1, 0}, {2, 2}, {3, 7}}) {
    CHECK(all.targets(i) == label);
    CHECK(all.inputs(i, 2, 5, 7) == pixel(label, 2, 5, 7));
  }
  CHECK(read_cifar10(dir.path.string(), {.prefix = "data_batch"}).size() == 3);
  CHECK(read_cifar10(dir.path.string() + "/", {.prefix = "test"}).targets(0) == 7);
}

TEST_CASE("files that are not of CIFAR-10 are refused by name") {
  const folder dir;
  CHECK_THAT(message_of(dir.path.string()), Contains(dir.path.string() + ": no file in it is named *.bin"));
  dir.file("a.bin", records({1}));
  CHECK_THAT(message_of(dir.path.string(), {.prefix = "data"}), Contains("no file in it is named data*.bin"));
  const std::string whole = records({1, 2});
  CHECK_THAT(message_of(dir.file("b.bin", whole.substr(0, 6145))),
             Contains("b.bin: has 6145 bytes, but a file of CIFAR-10 has a multiple of 3073"));
  CHECK_THAT(message_of(dir.path.string()), Contains("b.bin: has 6145 bytes"));
  CHECK_THAT(message_of(dir.file("b.bin", whole + "x")), Contains("has 6147 bytes"));
  CHECK_THAT(message_of(dir.file("b.bin", "")), Contains("has 0 bytes"));
  CHECK_THAT(message_of(dir.file("b.bin", records({4, 10}))), Contains("b.bin: image 1 has the label 10"));
  CHECK_THAT(message_of(dir.file("b.bin", records({255}))), Contains("image 0 has the label 255"));
  CHECK_THAT(message_of(dir.file("none.bin")), Contains("none.bin: cannot open for reading: No such file"));
}

TEST_CASE("pictures of CIFAR-10 itself are read") {
  const char* const data = std::getenv("SINTER_DATA");
  const std::string path = std::string(data == nullptr ? "" : data) + "/cifar10/lossless_train_first4000.bin";
  if (!std::filesystem::exists(path)) return;
  const auto set = read_cifar10(path);
  CHECK(set.size() == 4000);
  CHECK(set.targets(0) == 6);  // a frog
  CHECK(set.inputs(0, 0, 0, 0) == 59);
}

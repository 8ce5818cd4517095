// tests/io/safetensors_test.cpp: safetensors files, whole and hostile, read, converted, mapped and written.
#include "../catch.hpp"
#include "formats.hpp"

#include <cmath>
#include <cstdlib>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <class Error = io_error, class F>
std::string message_of(const F& f) {
  return ::message_of<Error>(f, "no such error");
}

/// The folder of data sets that are no part of this repository; empty if there is none.
std::filesystem::path data_folder() {
  const char* const folder = std::getenv("SINTER_DATA");
  return folder == nullptr ? "" : folder;
}

tensor<float, 2> two_by_three() { return {{1, 2, 3}, {4, 5, 6}}; }

}  // namespace

TEST_CASE("safetensors files are read, or refused with the reason") {
  const folder dir;
  const auto cases = format_cases(".safetensors");
  REQUIRE(cases.size() > 40);
  for (const format_case& c : cases) {
    const std::string path = dir.file(c.name, c.bytes);
    for (const bool map : {false, true}) {
      const std::string text = verdict([&] { return described(read_safetensors(path, {.map = map})); });
      INFO(c.name);
      if (c.expected.starts_with("ok")) {
        CHECK(text == c.expected);
      } else {
        CHECK_THAT(text, Contains(path) && Contains(c.expected));
      }
    }
  }
}

TEST_CASE("safetensors files of the reference implementation's tests are read or refused as there") {
  const std::filesystem::path folder = data_folder() / "format_vectors" / "safetensors";
  if (!std::filesystem::exists(folder / "EXPECTED.tsv")) return;
  const std::pair<const char*, const char*> texts[] = {
      {"MetadataIncompleteBuffer", "bytes of data, but"},
      {"HeaderTooLarge", "but the format allows 100000000"},
      {"HeaderTooSmall", "too few for the length of a header"},
      {"InvalidHeaderLength", "follow; it is cut short"},
      {"InvalidHeader", "not UTF-8"},
      {"InvalidHeaderDeserialization", "header, byte 1: "},
      {"TensorInvalidInfo", "has data_offsets for 4 bytes, but its shape (2, 2) of I32 needs 16"},
      {"ValidationOverflow", "overflows"},
      {"InvalidOffset", "it overlaps another tensor"},
  };
  std::ifstream in(folder / "EXPECTED.tsv");
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const std::size_t first = line.find('\t'), last = line.rfind('\t');
    const std::string expected = line.substr(last + 1);
    const std::string text =
        verdict([&] { return described(read_safetensors((folder / line.substr(0, first)).string())); });
    INFO(line);
    if (expected.starts_with("ok")) CHECK(text == expected);
    for (const auto& [name, part] : texts)
      if (expected == name) CHECK_THAT(text, Contains(part));
    CHECK(expected.starts_with("ok") == text.starts_with("ok"));
  }
  CHECK(count == 15);
}

TEST_CASE("the weights of a trained network are read") {
  const std::filesystem::path path = data_folder() / "resnet20" / "resnet20-12fca82f.safetensors";
  if (!std::filesystem::exists(path)) return;
  const safetensors plain = read_safetensors(path.string());
  const safetensors mapped = read_safetensors(path.string(), {.map = true});
  CHECK(plain.names().front() == "conv1.weight");
  double sum = 0, absolute = 0;
  index_t count = 0;
  for (const std::string& name : plain.names()) {
    const host_tensor a = plain.entry(name).value, b = mapped.entry(name).value;
    REQUIRE(a.element == element_kind::float32);
    REQUIRE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
    const std::span values(reinterpret_cast<const float*>(a.bytes.data()), a.bytes.size() / sizeof(float));
    for (const float value : values) {
      sum += static_cast<double>(value);
      absolute += std::fabs(static_cast<double>(value));
    }
    count += static_cast<index_t>(values.size());
  }
  // By the reference implementation and NumPy.
  CHECK(plain.size() == 97);
  CHECK(count == 271098);
  CHECK(sum == Approx(139.7826495598208).epsilon(1e-9));
  CHECK(absolute == Approx(21349.562590950623).epsilon(1e-9));
  const tensor conv = mapped.get<float, 4>("conv1.weight");
  CHECK(conv.shape() == extents<4>{{16, 3, 3, 3}});
}

TEST_CASE("what is written as safetensors is read again") {
  const folder dir;
  const std::string path = dir.file("model.safetensors");
  const tensor w = two_by_three();
  const tensor<half, 1> h = {1, -2.5f, 65504};
  const tensor<bool, 1> b = {true, false, true};
  const tensor<std::int64_t, 0> s = full<std::int64_t>(-7);
  write_safetensors(
      path, {{"w", w}, {"\"\n\x01\xC3\xA9", h}, {"b", b}, {"s", s}, {"a", w.transpose()}, {"e", zeros<float>({0, 4})}},
      {{"z", "last"}, {"format", "pt"}});
  for (const bool map : {false, true}) {
    const safetensors file = read_safetensors(path, {.map = map});
    CHECK(file.names() == std::vector<std::string>{"s", "a", "e", "w", "\"\n\x01\xC3\xA9", "b"});
    CHECK(file.metadata() == safetensors_metadata{{"format", "pt"}, {"z", "last"}});
    CHECK(file.contains("w"));
    CHECK_FALSE(file.contains("W"));
    CHECK(file.shape("a") == std::vector<index_t>{3, 2});
    CHECK(file.kind("s") == element_kind::int64);
    CHECK(all(file.get<float, 2>("w") == w).item());
    CHECK(all(file.get<float, 2>("a") == w.transpose()).item());
    CHECK(all(cast<float>(file.get<half, 1>("\"\n\x01\xC3\xA9")) == cast<float>(h)).item());
    CHECK(all(file.get<bool, 1>("b") == b).item());
    CHECK(file.get<std::int64_t, 0>("s").item() == -7);
    CHECK(file.get<float, 2>("e").shape() == extents<2>{{0, 4}});
  }
}

TEST_CASE("the bytes of a safetensors file are those of the reference implementation, in any order of entries") {
  const folder dir;
  const tensor<float, 1> w = {1};
  const tensor<std::uint8_t, 1> u = {7};
  std::string expected =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  expected.append((8 - expected.size() % 8) % 8, ' ');
  expected = std::string{static_cast<char>(expected.size()), 0, 0, 0, 0, 0, 0, 0} + expected +
             std::string("\0\0\x80\x3f\0\0\x80\x3f\7", 9);
  write_safetensors(dir.file("x"), {{"a", w}, {"w", w}, {"b", u}}, {{"k", "v"}});
  CHECK(detail::read_file(dir.file("x")) == expected);
  write_safetensors(dir.file("x"), {{"b", u}, {"w", w}, {"a", w}}, {{"k", "v"}});
  CHECK(detail::read_file(dir.file("x")) == expected);
}

TEST_CASE("entries of one file can be written to another") {
  const folder dir;
  for (const format_case& c : format_cases(".safetensors")) {
    if (c.name != "any_order.safetensors") continue;
    const safetensors file = read_safetensors(dir.file(c.name, c.bytes));
    std::vector<named_tensor> entries;
    for (const std::string& name : file.names()) entries.push_back(file.entry(name));
    write_safetensors(dir.file("copy"), entries, file.metadata());
    CHECK(described(read_safetensors(dir.file("copy"))) ==
          "ok c U64 [1] = 18446744073709551615; b F16 [1] = 1.5; a U8 [3] = 1 2 3");
  }
}

TEST_CASE("another element type is read on request only, and only if every number fits") {
  const folder dir;
  const tensor<double, 1> d = {0.1, 1e300};
  const tensor<bfloat16, 1> n = {1.5f, -3};
  const tensor<std::int32_t, 1> i = {-1, 300};
  write_safetensors(dir.file("x"), {{"d", d}, {"n", n}, {"i", i}, {"b", tensor<bool, 1>{true, false}}});
  for (const bool map : {false, true}) {
    const safetensors file = read_safetensors(dir.file("x"), {.map = map});
    CHECK_THAT(message_of([&] { file.get<float, 1>("d"); }), Contains("x: 'd' holds F64, not float; get_as converts"));
    CHECK_THAT(message_of([&] { file.get_as<float, 1>("d"); }),
               Contains("'d': element 1 is 1e+300, which does not fit float; read another type"));
    CHECK(file.get_as<double, 1>("d")(0) == 0.1);
    CHECK(file.get_as<float, 1>("n")(0) == 1.5f);
    CHECK(file.get_as<half, 1>("n")(1) == half(-3));
    CHECK(file.get_as<std::int64_t, 1>("i")(0) == -1);
    CHECK(file.get_as<bfloat16, 1>("i")(1) == bfloat16(300));
    CHECK(file.get_as<float, 1>("b")(0) == 1);
    CHECK_THAT(message_of([&] { file.get_as<std::int32_t, 1>("n"); }),
               Contains("element 0 is 1.5, which does not fit int32"));
    CHECK_THAT(message_of([&] { file.get_as<std::uint8_t, 1>("i"); }),
               Contains("element 0 is -1, which does not fit uint8"));
    CHECK_THAT(message_of([&] { file.get_as<bool, 1>("i"); }), Contains("does not fit bool"));
  }
}

TEST_CASE("names and ranks that a safetensors file does not have are refused") {
  const folder dir;
  write_safetensors(dir.file("x"), {{"w", two_by_three()}});
  const safetensors file = read_safetensors(dir.file("x"));
  CHECK_THAT(message_of([&] { file.get<float, 2>("v"); }), Contains("x: holds no tensor 'v'; names() lists the 1"));
  CHECK_THAT(message_of([&] { file.get<float, 1>("w"); }), Contains("'w' has shape (2, 3) of rank 2, not 1"));
  CHECK_THAT(message_of([&] { file.get_as<double, 3>("w"); }), Contains("of rank 2, not 3"));
  CHECK_THAT(message_of([&] { file.shape("v"); }), Contains("holds no tensor 'v'"));
  CHECK_THAT(message_of([&] { read_safetensors(dir.file("none")); }),
             Contains("cannot open for reading: No such file"));
  CHECK_THAT(message_of([&] { read_safetensors(dir.path.string()); }), Contains("is no regular file"));
}

TEST_CASE("elements that no tensor can hold are refused when they are asked for") {
  const folder dir;
  for (const format_case& c : format_cases(".safetensors")) {
    if (c.name != "every_type.safetensors") continue;
    const safetensors file = read_safetensors(dir.file(c.name, c.bytes));
    CHECK_THAT(message_of([&] { file.get<float, 1>("i"); }),
               Contains("'i' holds F8_E4M3, which no tensor can hold, not float"));
    CHECK_THAT(message_of([&] { file.get_as<float, 1>("k"); }), Contains("'k' holds C64, which cannot be read"));
    CHECK(file.get<double, 1>("g")(0) == 0.1);  // not aligned in the file
    CHECK(file.get_as<std::int64_t, 1>("f")(0) == 4294967295);
    CHECK(file.get<bool, 1>("a")(1));  // any byte but 0 is true
    CHECK_THAT(message_of<value_error>([&] { write_safetensors(dir.file("y"), {file.entry("i")}); }),
               Contains("the elements of 'i' have no type that can be written"));
  }
}

TEST_CASE("a tensor without elements is read whatever its other extents") {
  const folder dir;
  for (const format_case& c : format_cases(".safetensors")) {
    if (c.name != "no_elements_of_large_extents.safetensors") continue;
    for (const bool map : {false, true})
      CHECK(read_safetensors(dir.file(c.name, c.bytes), {.map = map}).get<float, 3>("t").numel() == 0);
  }
}

TEST_CASE("tensors of a mapped file share its pages, and writing to them leaves the file alone") {
  const folder dir;
  const std::string path = dir.file("x");
  write_safetensors(path, {{"w", two_by_three()}});
  const std::string bytes = detail::read_file(path);
  tensor<float, 2> w;
  {
    const safetensors file = read_safetensors(path, {.map = true});
    w = file.get<float, 2>("w");
    CHECK(file.get<float, 2>("w").data() == w.data());
  }
  write_safetensors(path, {{"w", eval(two_by_three() * 10.f)}});  // another file takes the name
  CHECK(w(1, 2) == 6);
  w.in_place() = w * 2.f;
  CHECK(w(1, 2) == 12);
  CHECK(read_safetensors(path).get<float, 2>("w")(1, 2) == 60);
}

TEST_CASE("a safetensors file that is cut short after it was opened is an io_error") {
  const folder dir;
  const std::string path = dir.file("x");
  write_safetensors(path, {{"w", two_by_three()}});
  const safetensors file = read_safetensors(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THAT(message_of([&] { file.get<float, 2>("w"); }), Contains("was cut short after it had been opened"));
}

TEST_CASE("entries that do not make a safetensors file are refused, and what was there stays") {
  const folder dir;
  const std::string path = dir.file("x");
  detail::write_file(path, "as before");
  const tensor w = two_by_three();
  const auto text_of = [&](const std::vector<named_tensor>& entries, const safetensors_metadata& metadata = {}) {
    const std::string text = message_of<value_error>([&] { write_safetensors(path, entries, metadata); });
    CHECK(detail::read_file(path) == "as before");
    return text;
  };
  CHECK_THAT(text_of({{"w", w}, {"v", w}, {"w", two_by_three()}}), Contains("two entries have the name 'w'"));
  CHECK_THAT(text_of({{"__metadata__", w}}), Contains("a tensor cannot have the name '__metadata__'"));
  CHECK_THAT(text_of({{"\xff", w}}), Contains("is not UTF-8"));
  CHECK_THAT(text_of({{"w", w}}, {{"a", "\xff"}}), Contains("metadata 'a' is not UTF-8"));
  CHECK_THAT(text_of({{"w", w}}, {{"a", "1"}, {"a", "2"}}), Contains("metadata has 'a' twice"));
  CHECK_THAT(text_of({{"w", {element_kind::float32, {2, 2}, std::as_bytes(w.span())}}}),
             Contains("'w' has 24 bytes, but its shape (2, 2) of float needs 16"));
  CHECK_THAT(
      message_of<shape_error>([&] { write_safetensors(path, {named_tensor("w", {element_kind::int8, {-1}, {}})}); }),
      Contains("negative extent"));
  CHECK_THAT(message_of<value_error>([] { named_tensor("w", tensor<float, 1>()); }),
             Contains("the tensor 'w' is undefined"));
  CHECK_THAT(message_of([&] { write_safetensors("/nonexistent/x", {{"w", w}}); }), Contains("/nonexistent/x: "));
}

TEST_CASE("an entry shares the memory of a dense tensor and keeps it") {
  tensor w = two_by_three();
  const host_tensor e(w), columns(w.transpose());
  CHECK(e.bytes.data() == reinterpret_cast<const std::byte*>(w.data()));
  CHECK(e.shape == std::vector<index_t>{2, 3});
  CHECK(e.element == kind_of_element<float>());
  w = tensor<float, 2>();
  float last = 0;
  std::memcpy(&last, e.bytes.data() + 5 * sizeof(float), sizeof last);
  CHECK(last == 6);
  std::memcpy(&last, columns.bytes.data() + sizeof last, sizeof last);
  CHECK(last == 4);
  const host_tensor elsewhere(two_by_three().to<numa<0>>());
  CHECK(elsewhere.bytes.size() == 24);
}

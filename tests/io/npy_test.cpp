// tests/io/npy_test.cpp: .npy files, whole and hostile, read, converted and written.
#include "../catch.hpp"
#include "formats.hpp"

#include <cstdlib>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <class F>
std::string message_of(const F& f) {
  return ::message_of<io_error>(f, "no io_error");
}

}  // namespace

TEST_CASE("npy files are read, or refused with the reason") {
  const folder dir;
  const auto cases = format_cases(".npy");
  REQUIRE(cases.size() > 40);
  for (const format_case& c : cases) {
    const std::string path = dir.file(c.name, c.bytes);
    const std::string text = verdict([&] { return described_npy(path); });
    INFO(c.name);
    if (c.expected.starts_with("ok")) {
      CHECK(text == c.expected);
    } else {
      CHECK_THAT(text, Contains(path) && Contains(c.expected));
    }
  }
}

TEST_CASE("npy files of NumPy's own tests are read or refused") {
  const char* const data = std::getenv("SINTER_DATA");
  const std::filesystem::path folder = std::filesystem::path(data == nullptr ? "" : data) / "numpy_vectors" / "npy";
  if (!std::filesystem::exists(folder)) return;
  for (const char* const name : {"python3.npy", "win64python2.npy"})
    CHECK(verdict([&] { return described_npy((folder / name).string()); }) == "ok double [2] = 1 1");
  for (const char* const name : {"py2-objarr.npy", "py3-objarr.npy"})
    CHECK_THAT(verdict([&] { return described_npy((folder / name).string()); }),
               Contains("holds Python objects in a pickle"));
  CHECK_THAT(verdict([&] { return described_npy((folder / "py3-objarr.npz").string()); }),
             Contains("is a .npz archive"));
}

TEST_CASE("what is written as npy is read again") {
  const folder dir;
  const std::string path = dir.file("x.npy");
  const tensor<float, 2> x = {{1, 2, 3}, {4, 5, 6}};
  write_npy(path, x.transpose());
  CHECK(all(read_npy<float, 2>(path) == x.transpose()).item());
  CHECK(read_npy<float, 2>(path).is_contiguous());
  write_npy(path, full<std::int64_t>(-7));
  CHECK(read_npy<std::int64_t, 0>(path).item() == -7);
  write_npy(path, tensor<bool, 1>{true, false});
  CHECK(read_npy<bool, 1>(path)(0));
  write_npy(path, tensor<half, 1>{0.5f});
  CHECK(read_npy<half, 1>(path)(0) == half(0.5f));
  write_npy(path, zeros<double>({2, 0, 3}));
  CHECK(read_npy<double, 3>(path).shape() == extents<3>{{2, 0, 3}});
  write_npy(path, zeros<std::uint8_t>({1, 1, 1, 1, 1, 1, 1, 2}));
  CHECK(read_npy<std::uint8_t, 8>(path).numel() == 2);
  write_npy(path, x.to<numa<0>>());
  CHECK(all(read_npy<float, 2>(path) == x).item());
  CHECK_THROWS_WITH(write_npy(path, tensor<float, 1>()), Contains("x.npy' is undefined"));
}

TEST_CASE("the bytes of an npy file are those of numpy.save") {
  const folder dir;
  write_npy(dir.file("x.npy"), tensor<std::int16_t, 1>{1, -2});
  std::string expected =
      std::string("\x93NUMPY\1\0\x76\0", 10) + "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
  expected.append(127 - expected.size(), ' ');
  CHECK(detail::read_file(dir.file("x.npy")) == expected + std::string("\n\1\0\xfe\xff", 5));
}

TEST_CASE("an npy file of another type or rank is refused, and read_npy_as converts what fits") {
  const folder dir;
  const std::string path = dir.file("x.npy");
  write_npy(path, tensor<double, 1>{1, 0.5, 1e300});
  CHECK_THAT(message_of([&] { read_npy<float, 1>(path); }),
             Contains("x.npy: holds elements of type double, not float; read_npy_as converts"));
  CHECK_THAT(message_of([&] { read_npy<double, 2>(path); }), Contains("holds an array of shape (3,) of rank 1, not 2"));
  CHECK_THAT(message_of([&] { read_npy_as<float, 1>(path); }),
             Contains("element 2 is 1e+300, which does not fit float"));
  CHECK_THAT(message_of([&] { read_npy_as<std::int32_t, 1>(path); }),
             Contains("element 1 is 0.5, which does not fit int32"));
  CHECK(read_npy_as<double, 1>(path)(2) == 1e300);
  write_npy(path, tensor<std::int32_t, 1>{3, -300});
  CHECK(read_npy_as<bfloat16, 1>(path)(0) == bfloat16(3));
  CHECK_THAT(message_of([&] { read_npy<float, 1>(dir.file("none.npy")); }),
             Contains("cannot open for reading: No such file"));
}

TEST_CASE("an npy file whose name ends in .gz is unpacked, to the bytes that are allowed") {
  const folder dir;
  write_npy(dir.file("x.npy"), zeros<float>({1000}));
  if (std::system(("gzip -k '" + dir.file("x.npy") + "'").c_str()) != 0) return;  // no gzip here
  CHECK(read_npy<float, 1>(dir.file("x.npy.gz")).numel() == 1000);
  CHECK_THAT(message_of([&] { read_npy<float, 1>(dir.file("x.npy.gz"), {.max_unpacked = 4000}); }),
             Contains("unpacks to more than 4000 bytes"));
}

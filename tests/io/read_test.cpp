// tests/io/read_test.cpp: CSV and idx files, whole, damaged and hostile.
#include "../catch.hpp"
#include "folder.hpp"

#include <clocale>
#include <cstdlib>
#include <filesystem>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
namespace fs = std::filesystem;
using Catch::Contains;

namespace {

std::string idx(std::string dims, int type, std::size_t bytes) {
  return std::string({0, 0, static_cast<char>(type), static_cast<char>(dims.size() / 4)}) + dims +
         std::string(bytes, '\7');
}
std::string be(std::uint32_t x) {
  std::string s;
  detail::put_big_endian(s, x);
  return s;
}

template <class F>
std::string message_of(const F& f) {
  return ::message_of<io_error>(f, "no io_error");
}

}  // namespace

TEST_CASE("read_csv reads numbers as they are written") {
  const folder dir;
  const std::string path = dir.file("a.csv", "x;y\r\n 1.5; -2e3\t\r\n\n+3;nan\n  ;\n");
  CHECK_THAT(message_of([&] { read_csv<double>(path, {';', 1}); }), Contains("a.csv:5: column 1: the field is empty"));
  const tensor t = read_csv<double>(dir.file("b.csv", "x;y\r\n 1.5; -2e3\t\r\n\n+3;nan"), {';', 1});
  CHECK(t.shape() == extents<2>{{2, 2}});
  CHECK(t(0, 1) == -2000);
  CHECK(t(1, 0) == 3);
  CHECK(std::isnan(t(1, 1)));
  CHECK(read_csv<std::int8_t>(dir.file("c.csv", "-128,127\n"))(0, 0) == -128);
  CHECK(read_csv<float>(dir.file("d.csv",
                                 "\xEF\xBB\xBF"
                                 "1,2\n"))(0, 0) == 1);  // as spreadsheets write UTF-8
  const tensor small = read_csv<float>(dir.file("e.csv", "1e-60,-1e-45,1e-400\n"));
  CHECK(small(0, 0) == 0);
  CHECK(small(0, 1) == -std::numeric_limits<float>::denorm_min());
  CHECK(small(0, 2) == 0);
  CHECK_THROWS_AS(read_csv<float>(dir.file("f.csv", "1e60\n")), io_error);
  CHECK_THROWS_AS(read_csv<float>(dir.file("g.csv", "1e-60x\n")), io_error);
  CHECK_THROWS_AS(read_csv<float>(path, {';', -1}), value_error);
}

TEST_CASE("read_csv names file, line and column of what is wrong") {
  const folder dir;
  const auto text_of = [&](const std::string& text) {
    return message_of([&] { read_csv<float>(dir.file("bad.csv", text)); });
  };
  CHECK_THAT(text_of("1,2\n3,x4\n"), Contains("bad.csv:2: column 2: 'x4' is not a number of type float"));
  CHECK_THAT(text_of("1,2\n3,4.5.6\n"), Contains(":2: column 2: '4.5.6' is not"));
  CHECK_THAT(text_of("1,2\n3\n"), Contains(":2: 1 field where the first row has 2; the file seems to be cut short"));
  CHECK_THAT(text_of("1,2\n3,4,5\n6,7\n"),
             Contains(":2: 3 fields where the first row has 2") && !Contains("cut short"));
  CHECK_THAT(text_of("1,\n"), Contains("the field is empty"));
  CHECK_THAT(text_of("1e99\n"), Contains("'1e99' does not fit float"));
  CHECK_THAT(text_of(""), Contains("holds no rows"));
  CHECK_THAT(text_of("\n\n"), Contains("holds no rows"));
  CHECK_THAT(text_of(std::string("1,\0\x7f\n", 6)), Contains("'?\?' is not"));
  CHECK_THAT(message_of([&] { read_csv<std::uint8_t>(dir.file("i.csv", "256\n")); }), Contains("does not fit uint8"));
  CHECK_THAT(message_of([&] { read_csv<int>(dir.file("i.csv", "1.5\n")); }),
             Contains("'1.5' is not a number of type int32"));
}

TEST_CASE("read_csv reads numbers alike in every locale") {
  // A locale of C's library with a decimal comma, made here: machines need not have one.
  const folder dir;
  dir.file("comma", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n");
  std::system(("cd " + dir.path.string() + " && localedef -c -i comma ./xx_XX > /dev/null 2>&1").c_str());
  ::setenv("LOCPATH", dir.path.c_str(), 1);
  const bool comma = std::setlocale(LC_NUMERIC, "xx_XX") != nullptr;
  const std::string path = dir.file("a.csv", "1.5e-400,-2.5e-50,1.25\n");
  const auto [t, printed, picture] = [&] {
    const tensor read = read_csv<float>(path);
    return std::tuple(read, to_string(read), detail::number_text(0.5));
  }();
  std::setlocale(LC_NUMERIC, "C");
  ::unsetenv("LOCPATH");
  if (!comma) WARN("no localedef: read in the C locale only");
  CHECK(t(0, 0) == 0);
  CHECK((t(0, 1) == 0 && std::signbit(t(0, 1))));
  CHECK(t(0, 2) == 1.25f);
  CHECK_THAT(printed, Contains("1.25"));
  CHECK(picture == "0.5");
}

TEST_CASE("read_csv tells numbers that are too small from those that are too large") {
  const folder dir;
  const auto fits = [&](const std::string& text) {
    double value = 1;
    const std::string problem = message_of([&] { value = read_csv<double>(dir.file("a.csv", text))(0, 0); });
    if (problem != "no io_error") CHECK_THAT(problem, Contains("does not fit double"));
    return value == 0;
  };
  const std::string zeros(400, '0');
  for (const char* small : {"1e-400", "-1.5E-400", "0.001e-322", "99e-999", "1e-99999999999999999999", ".1e-400"})
    CHECK(fits(small));
  for (const char* large : {"1e400", "-1.5E+400", "0.001e312", "10e308", "1e99999999999999999999", ".1e400"})
    CHECK_FALSE(fits(large));
  CHECK(fits("0." + zeros + "1"));
  CHECK(fits("0." + zeros + "1e10"));
  CHECK_FALSE(fits("1" + zeros));
  CHECK_FALSE(fits("1" + zeros + ".5e-10"));
  CHECK_FALSE(fits("0." + zeros + "1e800"));
}

TEST_CASE("read_csv reads numbers of 16 bits") {
  const folder dir;
  const tensor h = read_csv<half>(dir.file("h.csv", "0.1,65504,-1e-9,inf\n1e-7,1e-50,nan,-65519\n"));
  CHECK(static_cast<float>(h(0, 0)) == 0.0999755859375f);
  CHECK(static_cast<float>(h(0, 1)) == 65504);
  CHECK(static_cast<float>(h(0, 2)) == 0);
  CHECK(std::isinf(static_cast<float>(h(0, 3))));
  CHECK(static_cast<float>(h(1, 0)) == 0x1p-23f);
  CHECK(std::isnan(static_cast<float>(h(1, 2))));
  CHECK(static_cast<float>(h(1, 3)) == -65504);
  CHECK_THAT(message_of([&] { read_csv<half>(dir.file("h.csv", "1,65520\n")); }),
             Contains("column 2: '65520' does not fit half"));
  const tensor b = read_csv<bfloat16>(dir.file("b.csv", "0.1,1e38\n"));
  CHECK(static_cast<float>(b(0, 0)) == 0.10009765625f);
  CHECK_THAT(message_of([&] { read_csv<bfloat16>(dir.file("b.csv", "3.4e38\n")); }), Contains("does not fit bfloat16"));
  CHECK_THAT(message_of([&] { read_csv<bfloat16>(dir.file("b.csv", "3.4e39\n")); }), Contains("does not fit bfloat16"));
}

TEST_CASE("a row of empty fields between blanks is a row") {
  const folder dir;
  const auto text_of = [&](const std::string& text, char separator) {
    return message_of([&] { read_csv<float>(dir.file("tab", text), {.separator = separator}); });
  };
  CHECK_THAT(text_of("1\t2\t3\n\t\t\n4\t5\t6\n", '\t'), Contains("tab:2: column 1: the field is empty"));
  CHECK_THAT(text_of("1\t2\n \t\r\n", '\t'), Contains("tab:2: column 1: the field is empty"));
  CHECK_THAT(text_of("1 2\n \n", ' '), Contains("tab:2: column 1: the field is empty"));
  CHECK(text_of("1\t2\n \r\n\n", '\t') == "no io_error");
  CHECK(text_of("1 2\n\t\r\n\n", ' ') == "no io_error");
  CHECK(text_of("1,2\n \t\r\n", ',') == "no io_error");
  for (char separator : {'.', '-', '+', '1', 'e', 'N', '\n', '\r'})
    CHECK_THROWS_AS(read_csv<float>(dir.file("a.csv", "1.5\n"), {.separator = separator}), value_error);
}

TEST_CASE("files that cannot be opened say why") {
  const folder dir;
  CHECK_THAT(message_of([] { read_csv("/nonexistent/digits.csv"); }),
             Contains("/nonexistent/digits.csv: cannot open for reading: No such file"));
  CHECK_THAT(message_of([&] { read_csv(dir.path.string()); }), Contains("is a directory"));
  CHECK_THAT(message_of([] { read_idx<std::uint8_t, 1>("/nonexistent/x.gz"); }), Contains("cannot open"));
}

TEST_CASE("read_idx reads every element type in its byte order") {
  const folder dir;
  const tensor images = read_idx<std::uint8_t, 3>(dir.file("u8", idx(be(2) + be(3) + be(4), 8, 24)));
  CHECK(images.shape() == extents<3>{{2, 3, 4}});
  CHECK(images(1, 2, 3) == 7);
  std::string floats = idx(be(2), 0x0D, 0) + be(0x3f800000) + be(0xc0000000);
  const tensor f = read_idx<float, 1>(dir.file("f", floats));
  CHECK(f(0) == 1.f);
  CHECK(f(1) == -2.f);
  CHECK(read_idx<std::int32_t, 1>(dir.file("i", idx(be(1), 0x0C, 0) + be(258)))(0) == 258);
  CHECK(read_idx<std::uint8_t, 2>(dir.file("empty", idx(be(0) + be(5), 8, 0))).numel() == 0);
}

TEST_CASE("read_idx rejects damaged and hostile files without taking their word") {
  const folder dir;
  const auto text_of = [&](const std::string& bytes) {
    return message_of([&] { read_idx<std::uint8_t, 2>(dir.file("bad", bytes)); });
  };
  CHECK_THAT(text_of(""), Contains("no idx header"));
  CHECK_THAT(text_of("\x1f\x8b\x08garbage"), Contains("not an idx file"));
  CHECK_THAT(text_of(std::string("\0\0\x0a\2", 4)), Contains("not an idx file"));
  CHECK_THAT(text_of(idx(be(2), 8, 2)), Contains("rank 1, not 2"));
  CHECK_THAT(text_of(idx(be(2) + be(2), 0x0D, 16)), Contains("type float, not uint8"));
  CHECK_THAT(text_of(idx(be(2) + be(3), 8, 5)), Contains("cut short: 5 bytes of data where its shape (2, 3) needs 6"));
  CHECK_THAT(text_of(idx(be(2) + be(3), 8, 7)), Contains("longer than its shape (2, 3)"));
  CHECK_THAT(text_of(idx(be(2) + be(3), 8, 6).substr(0, 9)), Contains("incomplete idx header"));
  CHECK_THAT(text_of(idx(be(0xffffffff) + be(0xffffffff), 8, 100)), Contains("more elements than can be addressed"));
  CHECK_THAT(text_of(idx(be(0x7fffffff) + be(0x7fffffff), 8, 100)), Contains("cut short: 100 bytes"));
}

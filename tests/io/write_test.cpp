// tests/io/write_test.cpp: PNG and SVG files, and the progress bar.
#include "../catch.hpp"
#include "folder.hpp"

#include <cstdlib>
#include <filesystem>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
namespace fs = std::filesystem;
using Catch::Contains;

namespace {

/// Undoes the deflate of fixed codes, by the specification's tables rather than by the writer's formulas.
std::string inflate_fixed(const std::string& zlib) {
  const int base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  const int extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  std::size_t at = 16;
  const auto bit = [&] {
    const int b = static_cast<unsigned char>(zlib.at(at / 8)) >> (at % 8) & 1;
    ++at;
    return b;
  };
  REQUIRE(bit() == 1);
  REQUIRE(bit() + 2 * bit() == 1);
  std::string out;
  while (true) {
    int code = 0, length = 0, symbol = -1;
    while (symbol < 0) {
      code = code << 1 | bit();
      ++length;
      if (length == 7 && code <= 0x17) symbol = 256 + code;
      else if (length == 8 && code >= 0x30 && code <= 0xBF) symbol = code - 0x30;
      else if (length == 8 && code >= 0xC0 && code <= 0xC7) symbol = 280 + code - 0xC0;
      else if (length == 9 && code >= 0x190) symbol = 144 + code - 0x190;
    }
    if (symbol == 256) break;
    if (symbol < 256) {
      out += static_cast<char>(symbol);
      continue;
    }
    int run = base[symbol - 257];
    for (int i = 0; i < extra[symbol - 257]; ++i) run += bit() << i;
    for (int i = 0; i < 5; ++i) REQUIRE(bit() == 0);
    out += std::string(static_cast<std::size_t>(run), out.back());
  }
  std::string check;
  detail::put_big_endian(check, detail::adler32(out));
  CHECK(zlib.substr(zlib.size() - 4) == check);
  CHECK((at + 7) / 8 == zlib.size() - 4);
  return out;
}

}  // namespace

TEST_CASE("checksums have their known values") {
  CHECK(detail::crc32("123456789") == 0xCBF43926u);
  CHECK(detail::adler32("Wikipedia") == 0x11E60398u);
  CHECK(detail::base64("Man") == "TWFu");
  CHECK(detail::base64("Ma") == "TWE=");
  CHECK(detail::base64("M") == "TQ==");
}

TEST_CASE("deflate gives back what went in, runs of every length too") {
  for (int run = 1; run < 600; run += run < 20 ? 1 : 37) {
    const std::string in =
        "ab" + std::string(static_cast<std::size_t>(run), 'c') + "\xff\xc0\x90" + std::string(300, '\0');
    CHECK(inflate_fixed(detail::zlib_runs(in)) == in);
  }
  CHECK(inflate_fixed(detail::zlib_runs("")) == "");
  CHECK(detail::zlib_runs(std::string(100000, 'x')).size() < 1200);
}

TEST_CASE("a PNG has header, rows and checksums") {
  const tensor<std::uint8_t, 2> grey = {{0, 1}, {100, 2}, {200, 3}};
  const std::string png = detail::png_bytes(grey.data(), 3, 2, 1);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.substr(16, 10) == std::string("\0\0\0\2\0\0\0\3\x08\0", 10));
  const std::size_t data = png.find("IDAT") + 4, end = png.find("IEND") - 8;
  CHECK(inflate_fixed(png.substr(data, end - data)) == std::string("\0\0\1\0\x64\2\0\xc8\3", 9));
}

TEST_CASE("write_png takes an image whose channels come last, or that has none") {
  const folder dir;
  write_png(dir.file("g.png"), zeros<std::uint8_t>({2, 3}).transpose());
  CHECK(detail::read_file(dir.file("g.png")).substr(16, 10) == std::string("\0\0\0\2\0\0\0\3\x08\0", 10));
  write_png(dir.file("c.png"), full<std::uint8_t>({4, 5, 3}, 9));
  CHECK(detail::read_file(dir.file("c.png"))[25] == 2);
  CHECK_THROWS_AS(write_png(dir.file("x.png"), zeros<std::uint8_t>({4, 5, 4})), shape_error);
  CHECK_THROWS_AS(write_png(dir.file("x.png"), zeros<std::uint8_t>({0, 5})), shape_error);
  CHECK_FALSE(fs::exists(dir.file("x.png")));
}

TEST_CASE("a picture that cannot be written is an io_error") {
  CHECK_THROWS_AS(write_png("/nonexistent/x.png", zeros<std::uint8_t>({1, 1})), io_error);
}

TEST_CASE("plots hold every line, tick and label, and survive odd values") {
  const folder dir;
  write_plots(dir.file("p.svg"), {{"a < b", "epoch", {{"train & test", {1, 0.5, NAN, 0.25}}, {"flat", {0.3, 0.3}}}},
                                  {"empty", "", {{"none", {}}, {"inf", {INFINITY}}}},
                                  {"one", "", {{"x", {5}, {1e9}}}}});
  const std::string svg = detail::read_file(dir.file("p.svg"));
  CHECK_THAT(svg, Contains("a &lt; b") && Contains("train &amp; test") && Contains(">0.4</text>") &&
                      Contains("width=\"1260\""));
  CHECK_THAT(svg, !Contains("nan") && !Contains("inf\"") && !Contains("NaN"));
  const auto legends = [&dir](const char* name) {
    write_plots(dir.file("l.svg"), {{"", "", {{name, {1, 2}}}}});
    const std::string text = detail::read_file(dir.file("l.svg"));
    return text.find("h20\"") != std::string::npos;
  };
  CHECK(legends("loss"));
  CHECK_FALSE(legends(""));  // a line without a name has none
  CHECK_THROWS_AS(write_plots(dir.file("q.svg"), {{"", "", {{"bad", {1, 2}, {1}}}}}), value_error);
  CHECK_FALSE(fs::exists(dir.file("q.svg")));
}

TEST_CASE("plots of the largest, smallest and equal numbers have places and labels") {
  const folder dir;
  const auto svg_of = [&](std::vector<double> y, std::vector<double> x = {}) {
    write_plots(dir.file("p.svg"), {{"", "", {{"", std::move(y), std::move(x)}}}});
    return detail::read_file(dir.file("p.svg"));
  };
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> ends = {0., least, 1e-310, 1e-300, 1e-9, 1., 1e300, 1e308, most};
  for (double a : ends)
    for (double b : ends)
      for (double sign : {-1., 1.}) {
        const std::string svg = svg_of({a, sign * b, sign * a}, {b, sign * a, b});
        CAPTURE(a, b, sign);
        REQUIRE_THAT(svg, !Contains("nan") && !Contains("inf"));
        // The line is there, and inside of the axes.
        double x = 0, y = 0;
        const std::size_t line = svg.find("<path d=\"M", svg.find("stroke=\"#444\""));
        REQUIRE(std::sscanf(svg.c_str() + line, "<path d=\"M%lf %lf", &x, &y) == 2);
        CHECK((x >= 56 && x <= 404 && y >= 36 && y <= 254));
      }
  CHECK_THAT(svg_of({-1e308, 1e308}),
             Contains(">-1e+308</text>") && Contains(">5e+307</text>") && Contains(">0</text>"));
  CHECK_THAT(svg_of({most, -most}), Contains(">-2e+308</text>") && Contains(">2e+308</text>"));
  CHECK_THAT(svg_of({0, 1e-310}), Contains(">2e-311</text>") && Contains(">1e-310</text>"));
  CHECK_THAT(svg_of({0, least}), Contains(">1e-324</text>"));
  CHECK_THAT(svg_of({1000000, 1000004}), Contains(">1000001</text>") && Contains(">1000003</text>"));
}

TEST_CASE("captions are valid UTF-8 in any case") {
  const auto text = [](std::string_view bytes) { return detail::xml_escaped(bytes); };
  const std::string bad = "\xEF\xBF\xBD";
  for (const char* good :
       {"a", "\xC3\xA9", "\xE2\x86\x92", "\xED\x9F\xBF", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(text(good) == good);
  CHECK(text("a\x80z") == "a" + bad + "z");        // a byte that only goes on
  CHECK(text("\xFF\xF8") == bad + bad);            // no bytes of UTF-8
  CHECK(text("\xE2\x86") == bad + bad);            // cut short
  CHECK(text("\xE2\x86<") == bad + bad + "&lt;");  // cut short before another
  CHECK(text("\xC0\xBC") == bad + bad);            // '<' in two bytes
  CHECK(text("\xE0\x80\xBC") == bad + bad + bad);  // and in three
  CHECK(text("\xF0\x80\x80\xBC") == bad + bad + bad + bad);
  CHECK(text("\xED\xA0\x80") == bad + bad + bad);            // a surrogate
  CHECK(text("\xEF\xBF\xBF") == bad + bad + bad);            // U+FFFF
  CHECK(text("\xF4\x90\x80\x80") == bad + bad + bad + bad);  // beyond U+10FFFF
  CHECK(text(std::string_view("\0\t\x1f\x7f", 4)) == "   \x7f");
}

TEST_CASE("an image grid embeds one PNG for each image") {
  const folder dir;
  write_image_grid(dir.file("g.svg"), zeros<std::uint8_t>({10, 8, 8}), std::vector<std::string>(10, "3 \xE2\x86\x92 5"),
                   "wrong");
  const std::string svg = detail::read_file(dir.file("g.svg"));
  std::size_t images = 0;
  for (std::size_t at = svg.find("<image"); at != std::string::npos; at = svg.find("<image", at + 1)) ++images;
  CHECK(images == 10);
  CHECK_THAT(svg, Contains("base64,iVBORw0KGgo"));
  CHECK_THROWS_AS(write_image_grid(dir.file("h.svg"), zeros<std::uint8_t>({2, 8, 8}), {"one"}), shape_error);
  write_image_grid(dir.file("none.svg"), zeros<std::uint8_t>({0, 8, 8}), {});
  CHECK(fs::exists(dir.file("none.svg")));
}

TEST_CASE("without a terminal the progress bar is one line at the end") {
  const folder dir;
  std::FILE* f = std::fopen(dir.file("log").c_str(), "w");
  REQUIRE(f != nullptr);
  {
    progress_bar bar("epoch 1", 10, f);
    for (int i = 0; i < 20; ++i) bar.advance();
    bar.finish("loss 0.5");
    progress_bar unfinished("epoch 2", 0, f);
    unfinished.advance();
  }
  std::fclose(f);
  CHECK(detail::read_file(dir.file("log")) == "epoch 1  loss 0.5\n");
}

// tests/io/image_test.cpp: pictures are read as Pillow reads them and written so that they come back; damaged ones are
// refused, or take no more memory than they may. What needs a library is left out where that is not there.
#include "../catch.hpp"
#include "images.hpp"

#include <filesystem>
#include <random>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

/// The text of the io_error, or "read".
std::string verdict_on(std::string_view bytes, const image_options& options = {}) {
  try {
    decode_image(bytes, options);
    return "read";
  } catch (const io_error& e) {
    return e.what();
  }
}

/// The first file of that name.
[[maybe_unused]] std::string file_named(const std::string& name) {
  for (const image_case& c : image_cases())
    if (c.name == name) return c.file;
  FAIL("there is no " << name);
  return "";
}

[[maybe_unused]] tensor<std::uint8_t, 3> random_image(index_t channels, index_t height, index_t width) {
  generator gen(3);
  return eval(cast<std::uint8_t>(randint(gen, 0, 256, {channels, height, width})));
}

/// Every cut of a file is refused by name.
[[maybe_unused]] void check_cuts(const std::string& name) {
  const std::string whole = file_named(name);
  REQUIRE(verdict_on(whole) == "read");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string verdict = verdict_on(whole.substr(0, size));
    if (!verdict.starts_with("decode_image: ")) FAIL(name << " cut to " << size << " bytes: " << verdict);
  }
}

}  // namespace

TEST_CASE("what is no picture is refused by name") {
  const folder dir;
  const std::string empty = dir.file("empty.png", ""), text = dir.file("text.jpg", "GIF89a and more");
  CHECK_THROWS_WITH(read_image(empty), Contains(empty + ": is empty"));
  CHECK_THROWS_WITH(read_image(text), Contains(text + ": is neither a PNG nor a JPEG file"));
  CHECK_THROWS_WITH(read_image(dir.file("x.png")), Contains("x.png: cannot open for reading"));
  CHECK_THROWS_WITH(read_image(dir.path.string()), Contains("is a directory, not a file"));
  CHECK(verdict_on("") == "decode_image: is empty");
  CHECK(verdict_on("\x89PNG\r\n\x1a") == "decode_image: is neither a PNG nor a JPEG file");
  CHECK_THROWS_AS(read_image(text), io_error);
}

TEST_CASE("images that no file holds are not written") {
  const folder dir;
  const std::string png = dir.file("x.png"), jpeg = dir.file("x.jpg");
  CHECK_THROWS_WITH(write_png(zeros<std::uint8_t>({5, 2, 2}), png),
                    "write_png: shape (5, 2, 2) is not (channels, height, width) with 1 to 4 channels");
  CHECK_THROWS_WITH(write_jpeg(zeros<std::uint8_t>({4, 2, 2}), jpeg),
                    "write_jpeg: shape (4, 2, 2) is not (channels, height, width) with 1 or 3 channels");
  CHECK_THROWS_WITH(
      write_jpeg(zeros<std::uint8_t>({3, 0, 2}), jpeg),
      Contains("write_jpeg: an image of 0 x 2 pixels cannot be written; such a file has 1 to 65500 rows"));
  CHECK_THROWS_WITH(write_png(zeros<std::uint8_t>({1, 1, 1000001}), png), Contains("1 to 1000000 rows and columns"));
  CHECK_THROWS_WITH(write_png(tensor<std::uint8_t, 3>(), png), Contains("write_png: the image is an empty"));
  CHECK_THROWS_WITH(write_jpeg(zeros<std::uint8_t>({3, 2, 2}), jpeg, {.quality = 0}),
                    "write_jpeg: the quality is 0; it must be from 1 to 100");
  CHECK_THROWS_AS(write_jpeg(zeros<std::uint8_t>({3, 2, 2}), jpeg, {.quality = 101}), value_error);
  CHECK(dir.names().empty());
  CHECK_THROWS_AS(write_png(zeros<std::uint8_t>({1, 1, 1}), "/nonexistent/x.png"), io_error);
}

TEST_CASE("EXIF that is damaged turns nothing") {
  using detail::jpeg_orientation;
  std::string file;
  for (const image_case& c : image_cases())
    if (c.name == "orientation6.jpg") file = c.file;
  REQUIRE(jpeg_orientation(file) == 6);
  const std::size_t exif = file.find("Exif");
  for (std::size_t size = 0; size < exif + 60; ++size) {
    const int orientation = jpeg_orientation(file.substr(0, size));
    if (orientation != 1 && orientation != 6) FAIL("cut to " << size << " bytes: " << orientation);
  }
  for (const char* list : {"\xff\xff\xff\xff", "\x1e\0\0\0", "\0\0\0\0"}) {  // where the list of tags begins
    std::string changed = file;
    changed.replace(exif + 10, 4, std::string(list, 4));
    CHECK(jpeg_orientation(changed) == 1);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    std::string changed = file;
    for (int k = 0; k < 3; ++k) changed[random() % (exif + 50)] = static_cast<char>(random());
    const int orientation = jpeg_orientation(changed);
    if (orientation < 1 || orientation > 8) FAIL(orientation);
  }
}

#if SINTER_WITH_PNG

TEST_CASE("PNG files are read as Pillow reads them") {
  const folder dir;
  int cases = 0;
  for (const image_case& c : image_cases())
    if (c.is_png()) {
      ++cases;
      INFO(c.name << ", " << c.way);
      CHECK(difference(read_image(dir.file(c.name, c.file), c.options()), c.pixels) == 0);
      CHECK(difference(decode_image(std::vector<std::uint8_t>(c.file.begin(), c.file.end()), c.options()), c.pixels) ==
            0);
    }
  CHECK(cases > 70);
}

TEST_CASE("a written PNG has the same pixels, from any order of axes") {
  const folder dir;
  const std::string path = dir.file("x.png");
  for (index_t channels = 1; channels <= 4; ++channels) {
    const tensor image = random_image(channels, 13, 7);
    write_png(image, path);
    CHECK(difference(read_image(path), image) == 0);
    write_png(image.transpose(1, 2).flip(1), path);
    CHECK(difference(read_image(path), image.transpose(1, 2).flip(1).contiguous()) == 0);
    detail::write_file(path, detail::png_bytes(image.permute({1, 2, 0}).contiguous().data(), 13, 7, int(channels)));
    CHECK(difference(read_image(path), image) == 0);
  }
  const tensor photo = random_image(3, 4, 5);
  write_png(path, photo.permute({1, 2, 0}));
  CHECK(difference(read_image(path), photo) == 0);
  write_png(path, photo[1]);
  CHECK(difference(read_image(path), photo.slice(0, 1, 2)) == 0);
  const tensor flat = zeros<std::uint8_t>({3, 100, 100});
  write_png(flat, path);
  CHECK(std::filesystem::file_size(path) < 300);
}

TEST_CASE("a PNG that is cut short anywhere is refused") {
  for (const char* name : {"rgb8.png", "palette2_alpha.png", "grey_alpha16.png", "gamma.png"}) check_cuts(name);
}

TEST_CASE("a PNG in which any bit is changed is refused") {
  for (const char* name : {"rgb_alpha8.png", "palette4.png", "grey1.png", "gamma.png"}) {
    const std::string whole = file_named(name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string changed = whole;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      const std::string verdict = verdict_on(changed);
      if (!verdict.starts_with("decode_image: ")) FAIL(name << ", bit " << bit << ": " << verdict);
    }
  }
}

TEST_CASE("a PNG whose checksums fit its damage is read or refused") {
  std::mt19937 random(5);
  int read = 0, refused = 0;
  for (const image_case& c : image_cases()) {
    if (!c.is_png() || c.way != "unchanged") continue;
    for (int i = 0; i < 60; ++i) {
      std::string changed = c.file;
      for (auto k = 1 + random() % 3; k > 0; --k) changed[8 + random() % (changed.size() - 8)] = char(random());
      for (std::size_t at = 8; at + 12 <= changed.size();) {  // each chunk: size, name, body, checksum
        std::size_t size = 0;
        for (std::size_t b = 0; b < 4; ++b) size = size << 8 | static_cast<unsigned char>(changed[at + b]);
        if (size > changed.size() - at - 12) break;
        std::string sum;
        detail::put_big_endian(sum, detail::crc32(std::string_view(changed).substr(at + 4, size + 4)));
        changed.replace(at + 8 + size, 4, sum);
        at += 12 + size;
      }
      const auto mode = static_cast<image_mode>(random() % 5);
      verdict_on(changed, {.mode = mode, .max_pixels = 1 << 20}) == "read" ? ++read : ++refused;
    }
  }
  CHECK(read > 50);
  CHECK(refused > 500);
}

TEST_CASE("a PNG takes no memory for pixels that it cannot have") {
  const auto claims = [](std::uint32_t width, std::uint32_t height) {
    std::string head, file = "\x89PNG\r\n\x1a\n";
    detail::put_big_endian(head, width);
    detail::put_big_endian(head, height);
    head += std::string("\x08\2\0\0\0", 5);
    detail::put_chunk(file, "IHDR", head);
    detail::put_chunk(file, "IDAT", detail::zlib_runs(std::string(100, '\0')));
    detail::put_chunk(file, "IEND", "");
    return file;
  };
  reset_peak_memory<cpu>();
  const std::size_t before = memory<cpu>().peak_bytes;
  CHECK_THAT(verdict_on(claims(0x7fffffff, 0x7fffffff)),
             Contains("claims 2147483647 x 2147483647 pixels, more than the 268435456 that max_pixels in the options"));
  CHECK_THAT(verdict_on(claims(0x80000000, 0x80000000)), Contains("the PNG file is damaged or cut short"));
  CHECK_THAT(verdict_on(claims(0, 5)), Contains("the PNG file is damaged or cut short"));
  CHECK_THAT(verdict_on(claims(16384, 16384)), Contains("claims 16384 x 16384 pixels, which 68 bytes cannot hold"));
  CHECK_THAT(verdict_on(claims(0x7fffffff, 0x7fffffff), {.max_pixels = index_t{1} << 62}),
             Contains("more than the 72057594037927936 that"));
  CHECK_THAT(verdict_on(claims(0x7fffffff, 1 << 20), {.max_pixels = index_t{1} << 62}), Contains("cannot hold"));
  CHECK_THAT(verdict_on(claims(4, 5), {.max_pixels = 19}), Contains("claims 5 x 4 pixels, more than the 19"));
  CHECK(memory<cpu>().peak_bytes == before);
  CHECK(verdict_on(claims(8, 4), {.max_pixels = 32}) == "read");
  CHECK_THROWS_WITH(decode_image(claims(4, 5), {.max_pixels = 0}),
                    "decode_image: max_pixels is 0; it must be at least 1");
}

#else

TEST_CASE("a PNG is refused where libpng is not there; writing does without") {
  const folder dir;
  const std::string path = dir.file("x.png");
  write_png(zeros<std::uint8_t>({3, 4, 5}), path);
  CHECK_THROWS_WITH(read_image(path), path +
                                          ": is a PNG file, and this program is compiled without libpng: compile "
                                          "with -DSINTER_WITH_PNG=1 and link with -lpng (Debian: libpng-dev; "
                                          "CMake: -DSINTER_WITH_PNG=ON)");
  WARN("without libpng: PNG files are not read");
}

#endif

#if SINTER_WITH_JPEG

TEST_CASE("JPEG files are read as Pillow reads them") {
  const folder dir;
  int cases = 0;
  for (const image_case& c : image_cases())
    if (c.is_jpeg()) {
      ++cases;
      INFO(c.name << ", " << c.way);
      // 0 where libjpeg-turbo does as that of Pillow
      CHECK(difference(read_image(dir.file(c.name, c.file), c.options()), c.pixels) <= 1);
    }
  CHECK(cases > 30);
}

TEST_CASE("EXIF turns a picture only where that is asked for") {
  for (const image_case& c : image_cases())
    if (c.way == "upright") CHECK(decode_image(c.file).shape() == extents<3>{{1, 5, 8}});
}

TEST_CASE("a written JPEG has the pixels of one that Pillow wrote") {
  const folder dir;
  const std::string path = dir.file("x.jpg");
  int cases = 0;
  for (const image_case& c : image_cases())
    if (c.way == "quality") {
      ++cases;
      const tensor image =
          from_data<std::uint8_t>(std::vector<std::uint8_t>(c.file.begin(), c.file.end()), c.pixels.shape());
      write_jpeg(image, path, {.quality = std::stoi(c.name)});
      INFO("quality " << c.name);
      CHECK(difference(read_image(path), c.pixels) <= 1);
      const std::string bytes = detail::read_file(path);
      write_jpeg(image.permute({0, 2, 1}).clone().transpose(1, 2), path, {.quality = std::stoi(c.name)});
      CHECK(detail::read_file(path) == bytes);
    }
  CHECK(cases == 3);
}

TEST_CASE("a JPEG that is cut short anywhere is refused") {
  for (const char* name : {"grey.jpg", "420.jpg", "progressive.jpg", "restarts.jpg", "inks.jpg"}) check_cuts(name);
}

TEST_CASE("a JPEG in which bytes are changed is read or refused") {
  std::mt19937 random(7);
  int read = 0, refused = 0;
  for (const image_case& c : image_cases()) {
    if (!c.is_jpeg() || (c.way != "unchanged" && c.name != "orientation5.jpg")) continue;
    for (int i = 0; i < 300; ++i) {
      std::string changed = c.file;
      for (auto k = 1 + random() % 3; k > 0; --k) {
        char& byte = changed[random() % changed.size()];
        byte = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(byte ^ 1 << random() % 8);
      }
      const auto mode = static_cast<image_mode>(random() % 5);
      const std::string verdict =
          verdict_on(changed, {.mode = mode, .apply_exif_orientation = true, .max_pixels = 1 << 16});
      verdict == "read" ? ++read : ++refused;
      if (verdict != "read" && !verdict.starts_with("decode_image: ")) FAIL(verdict);
    }
  }
  CHECK(read > 100);
  CHECK(refused > 500);
}

TEST_CASE("a JPEG takes no memory for more pixels than it may have") {
  std::string file = file_named("420.jpg");
  const std::size_t size = file.find("\xff\xc0") + 5;
  file.replace(size, 4, "\xff\xdc\xff\xdc");
  reset_peak_memory<cpu>();
  const std::size_t before = memory<cpu>().peak_bytes;
  CHECK_THAT(verdict_on(file), Contains("claims 65500 x 65500 pixels, more than the 268435456 that max_pixels"));
  CHECK(memory<cpu>().peak_bytes == before);
}

#else

TEST_CASE("a JPEG is neither read nor written where libjpeg-turbo is not there") {
  const folder dir;
  const std::string advice =
      "this program is compiled without libjpeg-turbo: compile with -DSINTER_WITH_JPEG=1 and link with -lturbojpeg "
      "(Debian: libturbojpeg0-dev; CMake: -DSINTER_WITH_JPEG=ON)";
  CHECK(verdict_on("\xff\xd8\xff\xe0") == "decode_image: is a JPEG file, and " + advice);
  const std::string path = dir.file("x.jpg");
  CHECK_THROWS_WITH(write_jpeg(zeros<std::uint8_t>({3, 4, 5}), path), path + ": cannot be written: " + advice);
  CHECK(dir.names().empty());
  WARN("without libjpeg-turbo: JPEG files are neither read nor written");
}

#endif

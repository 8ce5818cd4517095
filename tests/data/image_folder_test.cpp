// tests/data/image_folder_test.cpp: folders of pictures: classes and their order, sizes, loaders, mistakes. What reads
// pictures is left out where libpng is not there.
#include "../catch.hpp"
#include "../io/folder.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A picture of one colour, where folders are made for it.
void put(const folder& dir, const std::string& name, int value, index_t height = 4, index_t width = 5) {
  fs::create_directories((dir.path / name).parent_path());
  write_png(full<std::uint8_t>({3, height, width}, static_cast<std::uint8_t>(value)), dir.file(name));
}

/// The paths of all samples as they are in the folder.
std::vector<std::string> names(const folder& dir, const image_folder<float>& set) {
  std::vector<std::string> all;
  for (const std::string& path : set.paths()) all.push_back(path.substr(dir.path.string().size() + 1));
  return all;
}

using words = std::vector<std::string>;

}  // namespace

TEST_CASE("classes are folders and samples are pictures, in the order of their names") {
  const folder dir;
  for (const char* name :
       {"rose/b.png", "rose/a.JPEG", "rose/a.png", "Daisy/z.jpg", "rose/more/1.Png", "rose/more/in/2.png",
        "rose/more-yet/0.jpg", "daisy 2/x.png", ".hidden/x.png", "rose/.x.png", "rose/.more/y.png"})
    put(dir, name, 1);
  for (const char* name : {"readme.png", "rose/notes.txt", "rose/png", "rose/more/x.png.bak", "rose/more/.png"})
    dir.file(name, "no picture");
  const image_folder set(dir.path.string());
  CHECK(set.classes() == words{"Daisy", "daisy 2", "rose"});
  // As torchvision, which sorts the folders of a class by their paths.
  CHECK(names(dir, set) == words{"Daisy/z.jpg", "daisy 2/x.png", "rose/a.JPEG", "rose/a.png", "rose/b.png",
                                 "rose/more/1.Png", "rose/more-yet/0.jpg", "rose/more/in/2.png"});
  CHECK(set.targets() == std::vector<std::int64_t>{0, 1, 2, 2, 2, 2, 2, 2});
  CHECK(set.size() == 8);
  CHECK(image_folder(dir.path.string() + "/").paths() == set.paths());
  static_assert(dataset<image_folder<float>> && dataset<image_folder<std::uint8_t>>);
  static_assert(std::is_same_v<decltype(set), const image_folder<float>>);
}

TEST_CASE("a folder that is no data set is refused by name") {
  const folder dir;
  const std::string path = dir.path.string();
  CHECK_THROWS_WITH(image_folder(dir.file("missing")), Contains("missing: cannot open the folder: No such file"));
  CHECK_THROWS_WITH(image_folder(path), path + ": has no folders; image_folder takes each of them for a class");
  const std::string file = dir.file("x.png", "");
  CHECK_THROWS_WITH(image_folder(path), Contains("has no folders"));
  CHECK_THROWS_WITH(image_folder(file), Contains("x.png: cannot open the folder: Not a directory"));
  put(dir, "full/x.png", 1);
  fs::create_directories(dir.path / "hollow/in");
  CHECK_THROWS_WITH(image_folder(path), dir.file("hollow") +
                                            ": has no pictures, which end in .png, .jpg or .jpeg, but "
                                            "image_folder takes it for a class");
  CHECK_THROWS_AS(image_folder(path), io_error);
  fs::create_directory_symlink(dir.path / "hollow", dir.path / "hollow/in/back");
  CHECK_THROWS_WITH(image_folder(path), Contains("lies more than 16 folders deep; does a link lead back?"));
}

TEST_CASE("settings of a folder of pictures are judged") {
  const folder dir;
  put(dir, "a/x.png", 1);
  const std::string path = dir.path.string();
  CHECK_THROWS_WITH(image_folder(path, {.size = {4}}),
                    "image_folder: the size is {4, 0}; give height and width, both at least 1, or neither");
  CHECK_THROWS_AS(image_folder(path, {.size = {-1, 3}}), value_error);
  CHECK_THROWS_WITH(image_folder(path, {.threads = 0}), "image_folder: threads must be at least 1, not 0");
  CHECK_THROWS_WITH(image_folder(path).get(1), "image_folder: sample 1 of 1");
  CHECK_THROWS_AS(image_folder(path).get(-1), index_error);
}

TEST_CASE("a file that cannot be read is named where it is asked for") {
  const folder dir;
  put(dir, "a/x.png", 1);
  fs::create_directories(dir.path / "a/folder.png");
  const std::string text = dir.file("a/y.jpg", "text"), path = dir.path.string();
  const image_folder set(path);
  REQUIRE(set.size() == 3);
  CHECK_THROWS_WITH(set.get(0), Contains("folder.png: is a directory, not a file"));
  CHECK_THROWS_WITH(set.get(2), text + ": is neither a PNG nor a JPEG file");
  fs::remove(text);
  CHECK_THROWS_WITH(set.get(2), Contains(text + ": cannot open for reading"));
#if !SINTER_WITH_PNG
  CHECK_THROWS_WITH(set.get(1), Contains("compiled without libpng"));
  WARN("without libpng: folders of pictures are not read");
#endif
}

#if SINTER_WITH_PNG

TEST_CASE("samples are bytes or fractions of 1") {
  const folder dir;
  put(dir, "a/x.png", 51);
  put(dir, "b/x.png", 255);
  const std::string path = dir.path.string();
  const auto s = image_folder(path).get(0);
  CHECK(s.input.shape() == extents<3>{{3, 4, 5}});
  CHECK(s.input(2, 3, 4) == 51.f / 255.f);
  CHECK(s.target == 0);
  const auto t = image_folder<std::uint8_t>(path).get(1);
  CHECK(t.input(0, 0, 0) == 255);
  CHECK(t.target == 1);
  CHECK(image_folder(path, {.mode = image_mode::gray}).get(1).input.shape() == extents<3>{{1, 4, 5}});
  CHECK_THROWS_WITH(image_folder(path, {.max_pixels = 19}).get(1), Contains("more than the 19 that max_pixels"));
}

TEST_CASE("pictures are resized as by Pillow") {
  const folder dir;
  fs::create_directories(dir.path / "a");
  std::ifstream in(SINTER_REPOSITORY "/tests/data/reference/image_folder.txt");
  int cases = 0;
  for (std::string line; std::getline(in, line); ++cases) {
    std::istringstream numbers(line);
    index_t height = 0, width = 0;
    std::string colon;
    numbers >> height >> width >> colon;
    std::vector<std::uint8_t> values;
    for (int value; numbers >> value;) values.push_back(static_cast<std::uint8_t>(value));
    const tensor expected = from_data<std::uint8_t>(values, {3, height, width});
    if (cases == 0) write_png(expected, dir.file("a/x.png"));
    const image_folder<std::uint8_t> bytes(dir.path.string(), {.size = {height, width}});
    const image_folder<float> fractions(dir.path.string(), {.size = {height, width}});
    const tensor got = cast<float>(bytes.get(0).input), exact = 255 * fractions.get(0).input,
                 want = cast<float>(expected);
    CHECK(max(abs(got - want)).item() <= (cases == 0 ? 0 : 1));  // Pillow rounds between rows and columns
    CHECK(max(abs(exact - want)).item() <= (cases == 0 ? 1e-4f : 1.01f));
    CHECK(max(abs(exact - got)).item() <= 0.501f);
  }
  CHECK(cases == 5);
}

TEST_CASE("a loader makes batches of a folder, on any number of threads") {
  const folder dir;
  for (int i = 0; i < 23; ++i)
    put(dir, (i % 3 == 0 ? "a/" : "b/") + std::to_string(100 + i) + ".png", i, 3 + i % 4, 6 + i % 3);
  const std::string path = dir.path.string();
  for (const int threads : {1, 2, 7}) {
    data_loader loader(image_folder<std::uint8_t>(path, {.size = {4, 6}, .threads = threads}),
                       {.batch_size = 5, .shuffle = true});
    std::vector<bool> seen(23);
    index_t batches = 0;
    for (auto& [x, y] : loader) {
      REQUIRE(x.shape() == extents<4>{{batches == 4 ? 3 : 5, 3, 4, 6}});
      for (index_t i = 0; i < y.size(0); ++i) {
        const int value = x(i, 2, 3, 5);
        CHECK((value % 3 == 0) == (y(i) == 0));
        seen.at(static_cast<std::size_t>(value)) = true;
      }
      ++batches;
    }
    CHECK(batches == 5);
    CHECK(std::count(seen.begin(), seen.end(), true) == 23);
  }
  generator gen(1);
  const auto parts = random_split(gen, image_folder(path, {.size = {2, 2}}), {20, 3});
  data_loader few(parts[1], {.batch_size = 8});
  for (auto& [x, y] : few) CHECK(x.shape() == extents<4>{{3, 3, 2, 2}});
}

TEST_CASE("the mistake of a batch that comes first is told, whatever the threads") {
  const folder dir;
  for (int i = 0; i < 12; ++i) put(dir, "a/" + std::to_string(100 + i) + ".png", i, i == 9 ? 5 : 4);
  const std::string path = dir.path.string();
  std::vector<index_t> rows(12);
  for (index_t i = 0; i < 12; ++i) rows[static_cast<std::size_t>(i)] = i;
  for (const int threads : {1, 4}) {
    const image_folder set(path, {.threads = threads});
    CHECK_THROWS_WITH(set.gather(rows), dir.file("a/109.png") +
                                            ": has shape (3, 5, 5), unlike the others of its batch, "
                                            "(3, 4, 5); give image_folder a size, or batches of 1");
    dir.file("a/104.png", "text");
    const image_folder sized(path, {.size = {4, 5}, .threads = threads});
    CHECK_THROWS_WITH(sized.gather(rows), Contains("104.png: is neither a PNG nor a JPEG file"));
    put(dir, "a/104.png", 4);
  }
  CHECK_THROWS_AS(image_folder(path).gather(std::span<const index_t>()), value_error);
}

#endif

#if SINTER_WITH_JPEG

TEST_CASE("a folder may hold JPEG files") {
  const folder dir;
  fs::create_directories(dir.path / "a");
  write_jpeg(full<std::uint8_t>({1, 8, 8}, 128), dir.file("a/grey.jpg"));
  write_jpeg(full<std::uint8_t>({3, 8, 8}, 128), dir.file("a/rgb.jpg"));
  const image_folder<std::uint8_t> set(dir.path.string());
  data_loader loader(set);
  for (auto& [x, y] : loader) CHECK(x.shape() == extents<4>{{2, 3, 8, 8}});
  CHECK(std::abs(set.get(0).input(2, 7, 7) - 128) <= 1);
}

#endif

// tests/io/table_test.cpp: text files with named columns, missing values and categories, as others write and damage
// them.
#include "../catch.hpp"

#include <cmath>
#include <random>

#include "folder.hpp"

using namespace sinter;
using Catch::Contains;
using texts = std::vector<std::string>;

namespace {

template <class A, class B>
bool all_equal(const A& a, const B& b) {
  return a.shape() == b.shape() && all(a == b).item();
}
struct files {
  folder dir;
  table of(std::string_view text, const table_options& options = {}) const {
    return read_table(dir.file("t.csv", text), options);
  }
  /// What is wrong with the text.
  std::string wrong(std::string_view text, const table_options& options = {}) const {
    return message_of<io_error>([&] { of(text, options); }, "nothing");
  }
};

}  // namespace

TEST_CASE("read_table gives columns by name, as numbers and as categories") {
  const files f;
  const table t = f.of("id,height,species\n1,1.5,oak\n2,-2e1,\"fir, white\"\n3,+7,oak\n");
  CHECK(t.rows() == 3);
  CHECK(t.names() == texts{"id", "height", "species"});
  CHECK(all_equal(t.numbers<std::int32_t>("id"), tensor<std::int32_t, 1>{1, 2, 3}));
  CHECK(all_equal(t.numbers({"height", "id"}), tensor<float, 2>{{1.5f, 1}, {-20, 2}, {7, 3}}));
  CHECK(all_equal(t.numbers<double>(t.names_except({"species"})), tensor<double, 2>{{1, 1.5}, {2, -20}, {3, 7}}));
  const auto [codes, species] = t.categories("species");
  CHECK(all_equal(codes, tensor<std::int64_t, 1>{1, 0, 1}));
  CHECK(species == texts{"fir, white", "oak"});
  CHECK(all_equal(t.codes("species", {"oak", "elm", "fir, white"}), tensor<std::int64_t, 1>{0, 2, 0}));
  CHECK(t.texts("species") == texts{"oak", "fir, white", "oak"});

  const table moved = table(f.of("a\nfar too long for a small string\n"));
  CHECK(moved.texts("a") == texts{"far too long for a small string"});
  const table plain = f.of("1;2\n3;4\n", {.separator = ';', .header = false});
  CHECK(plain.names() == texts{"0", "1"});
  CHECK(all_equal(plain.numbers<std::int64_t>(), tensor<std::int64_t, 2>{{1, 2}, {3, 4}}));
  const table skipped = f.of("# made by a tool\r\n\r\na\r\n5\r\n", {.skip_lines = 2});
  CHECK(all_equal(skipped.numbers("a"), tensor<float, 1>{5}));
}

TEST_CASE("read_table reads quotes, line ends, blanks and a byte order mark as RFC 4180 and others have them") {
  const files f;
  const table t = f.of("\xEF\xBB\xBF\"a \"\"b\"\"\" , c\r\n \"x\ny\"\t, \" z \" \r\n\r\n  \n\"\",\"\"\"\"\r\n1\"2,3");
  CHECK(t.names() == texts{"a \"b\"", "c"});
  CHECK(t.texts("a \"b\"") == texts{"x\ny", "", "1\"2"});
  CHECK(t.texts("c") == texts{" z ", "\"", "3"});
  CHECK(f.of("a,b\r1,2\r3,4\r").rows() == 2);
  CHECK(f.of("a\n1").rows() == 1);
  CHECK(f.of("a\tb\n\t\n \t1\n", {.separator = '\t'}).texts("a") == texts{"", ""});
  CHECK(f.of("a,b\n,\n").texts("b") == texts{""});
  CHECK(f.of(",a\n0,5\n").numbers("a")(0) == 5);  // an index without a name, as pandas writes it
  CHECK(f.of("n\n\xC3\xA4\n").texts("n") == texts{"\xC3\xA4"});
  const std::string large(1 << 20, 'x');
  CHECK(f.of("a\n\"" + large + "\"\n" + large + "\n").texts("a") == texts{large, large});
}

TEST_CASE("missing values are an error with their place, or the number that is asked for") {
  const files f;
  const table t = f.of("a,b,c\n1,,x\nNA,2,\n", {.missing = {"NA", "?"}});
  CHECK_THROWS_WITH(t.numbers("a"), Contains("t.csv:3: column 1: the value of 'a' is missing; column_options::fill"));
  CHECK_THROWS_WITH(t.numbers("b"), Contains("t.csv:2: column 2: the value of 'b' is missing"));
  CHECK(all_equal(t.numbers<std::int32_t>({"a", "b"}, {.fill = -1}), tensor<std::int32_t, 2>{{1, -1}, {-1, 2}}));
  CHECK(std::isnan(t.numbers<float>("a", {.fill = NAN})(1)));
  CHECK(all_equal(t.categories("c", {.fill = -100}).codes, tensor<std::int64_t, 1>{0, -100}));
  CHECK(t.texts("a") == texts{"1", ""});
  CHECK_THROWS_WITH(t.categories("c"), Contains("t.csv:3: column 3: the value of 'c' is missing"));
  CHECK_THROWS_AS(t.numbers<std::int32_t>("a", {.fill = NAN}), value_error);
  CHECK_THROWS_AS(t.numbers<std::uint8_t>("a", {.fill = 300}), value_error);
}

TEST_CASE("read_table and its columns name file, line and column of what is wrong") {
  const files f;
  CHECK_THAT(f.wrong("a,b\n1,2\n3\n4,5\n"), Contains("t.csv:3: 1 field where the first row has 2"));
  CHECK_THAT(f.wrong("a,b\n1,2\n3"), Contains("t.csv:3: 1 field where the first row has 2; the file seems to be cut"));
  CHECK_THAT(f.wrong("a,b\n1,2,3\n"), Contains("t.csv:2: 3 fields where the first row has 2"));
  CHECK_THAT(f.wrong("a,b\n1,\"2\n3,4\n"), Contains("t.csv:2: column 2: the quote has no end"));
  CHECK_THAT(f.wrong("a\n\""), Contains("t.csv:2: column 1: the quote has no end"));
  CHECK_THAT(f.wrong("a,b\n\"1\"x,2\n"), Contains("t.csv:2: column 1: text behind a quoted field"));
  CHECK_THAT(f.wrong(std::string_view("a,b\n1,\0002\n", 9)), Contains("t.csv:2: column 2: a NUL byte"));
  CHECK_THAT(f.wrong(std::string_view("a\n\"\n\0\"\n", 7)), Contains("t.csv:3: column 1: a NUL byte"));
  CHECK_THAT(f.wrong(std::string_view("\xFF\xFE\x61\0\n\0", 6)), Contains("t.csv:1: column 1: a NUL byte"));
  CHECK_THAT(f.wrong(""), Contains("t.csv: holds no rows"));
  CHECK_THAT(f.wrong("\xEF\xBB\xBF\n\n"), Contains("t.csv: holds no rows"));
  CHECK_THAT(f.wrong("a,b\n"), Contains("t.csv: holds no rows below its header"));
  CHECK_THAT(f.wrong("a,b\n1,2\n", {.skip_lines = 9}), Contains("t.csv: holds no rows"));
  CHECK_THAT(f.wrong("a,b,c,b\n1,2,3,4\n"), Contains("t.csv:1: columns 2 and 4 are both named 'b'"));
  CHECK(f.of("b,b\n1,2\n", {.header = false, .skip_lines = 1}).names() == std::vector<std::string>{"0", "1"});
  const table t = f.of("a,b,d\n\n\"x\n\",1,2\ny,1,2\n300,1,2\n");
  CHECK_THROWS_WITH(t.numbers("a"), Contains("t.csv:3: column 1: 'x?' is not a number of type float; categories()"));
  CHECK_THROWS_WITH(t.codes("a", {"x\n", "300"}), Contains("t.csv:5: column 1: 'y' is none of the 2"));
  CHECK_THROWS_WITH(t.numbers("c"), Contains("no column is named 'c'; there are 'a', 'b', 'd'"));
  CHECK_THROWS_AS(t.names_except({"c"}), index_error);
  CHECK_THROWS_WITH(f.of("a\n300\n").numbers<std::uint8_t>("a"),
                    Contains("t.csv:2: column 1: '300' does not fit uint8"));
  CHECK_THROWS_AS(f.of("a\n1\n", {.separator = '"'}), value_error);
  CHECK_THROWS_AS(f.of("a\n1\n", {.separator = '\n'}), value_error);
  CHECK_THROWS_AS(f.of("a\n1\n", {.skip_lines = -1}), value_error);
  CHECK_THROWS_AS(read_table("/nonexistent/a.csv"), io_error);
}

TEST_CASE("read_table survives all texts of a few bytes, and damaged ones") {
  const files f;
  std::mt19937 gen(1);
  const std::string_view letters("a1,\"\n\r \0\xEF", 9);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = gen() % 14; n > 0; --n) text += letters[gen() % letters.size()];
    const std::string path = f.dir.file("t.csv", text);
    try {
      const table t = read_table(path, {.header = gen() % 2 == 0});
      for (const std::string& name : t.names()) {
        std::size_t sum = 0;
        if (std::count(t.names().begin(), t.names().end(), name) == 1)
          for (const std::string& field : t.texts(name)) sum += field.size();
        CHECK(sum <= text.size());
      }
    } catch (const io_error&) {
    }
  }
}

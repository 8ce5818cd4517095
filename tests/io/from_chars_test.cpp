// tests/io/from_chars_test.cpp: numbers read by strtod are those of std::from_chars.
#include "../catch.hpp"

#include <clocale>
#include <cstring>
#include <string>
#include <vector>

#include <sinter/io.hpp>

using sinter::detail::from_chars_by_strtod;

namespace {

std::vector<std::string> texts() {
  std::vector<std::string> all = {"",
                                  "-",
                                  "+1",
                                  " 1",
                                  "1",
                                  "-1",
                                  "1.",
                                  ".5",
                                  "-.5",
                                  ".",
                                  "e5",
                                  "1e",
                                  "1e+",
                                  "1e5",
                                  "1E-5",
                                  "1e+5x",
                                  "0x10",
                                  "1,5",
                                  "12.5e3",
                                  "00012",
                                  "1e400",
                                  "-1e400",
                                  "1e-400",
                                  "0e999999999999999999999",
                                  "1e-999999999999999999999",
                                  "1e999999999999999999999",
                                  "inf",
                                  "-INF",
                                  "Infinity",
                                  "infinit",
                                  "nan",
                                  "-NaN",
                                  "1e38",
                                  "1e39",
                                  "1e-45",
                                  "1e-46",
                                  "4.9e-324",
                                  "2.4e-324",
                                  "2.5e-324",
                                  "1.7976931348623157e308",
                                  "1.7976931348623159e308",
                                  "2.2250738585072011e-308",
                                  "0.1",
                                  "-0",
                                  "-0.0e5",
                                  "9007199254740993",
                                  "9007199254740992.99999",
                                  "1.00000005960464477539062500000000000001",
                                  "16777217",
                                  "3.4028235677973366e38"};
  for (int i = 0; i < 2000; ++i) {
    const double x = std::ldexp(std::sin(i + 0.5), i % 700 - 350);
    char text[64];
    std::snprintf(text, sizeof text, i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.9e" : "%.3f", x);
    all.push_back(text);
  }
  all.push_back(std::string(5000, '0') + "1." + std::string(5000, '3') + "e-4990");
  all.push_back("0." + std::string(400, '0') + "17e400");
  return all;
}

/// The bits of the number, how many characters were read, and the error.
template <class T, class Read>
std::string outcome(const std::string& text, const Read& read) {
  T x = 7;
  const auto [end, problem] = read(text.data(), text.data() + text.size(), x);
  if (x != x) x = 8;  // signs and bits of NaN differ
  char bits[sizeof x];
  std::memcpy(bits, &x, sizeof x);
  return std::string(bits, sizeof x) + ' ' + std::to_string(end - text.data()) + ' ' +
         std::to_string(static_cast<int>(problem));
}

template <class T>
void compare() {
  for (const std::string& text : texts()) {
    INFO(text);
    const auto by_strtod = [](const char* first, const char* last, T& x) {
      return from_chars_by_strtod(first, last, x);
    };
#if defined(__cpp_lib_to_chars)
    const auto wanted = [](const char* first, const char* last, T& x) { return std::from_chars(first, last, x); };
    CHECK((outcome<T>(text, by_strtod) == outcome<T>(text, wanted)));
#endif
    const auto chosen = [](const char* first, const char* last, T& x) {
      return sinter::detail::from_chars(first, last, x);
    };
    CHECK((outcome<T>(text, chosen) == outcome<T>(text, by_strtod)));
  }
}

}  // namespace

TEST_CASE("numbers read by strtod are those of std::from_chars") {
  compare<double>();
  compare<float>();
}

TEST_CASE("the decimal point is one in every locale") {
  const std::string before = std::setlocale(LC_NUMERIC, nullptr);
  for (const char* const name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "C"})
    if (std::setlocale(LC_NUMERIC, name) != nullptr) {
      double x = 0;
      const std::string text = "1.5";
      CHECK(from_chars_by_strtod(text.data(), text.data() + 3, x).ptr == text.data() + 3);
      CHECK(x == 1.5);
    }
  std::setlocale(LC_NUMERIC, before.c_str());
}

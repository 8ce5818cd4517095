// tests/math/reference_test.cpp: the words of simd<float> and float against values computed in 50 digits.
#include <cstdlib>
#include <fstream>
#include <string>

#include "ulp.hpp"

using namespace sinter_test;
namespace math = sinter::math;

namespace {

struct word_row {
  const char* name;
  float (*packet)(float);
  float (*scalar)(float);
};

#define WORD(word)                                                                           \
  word_row {                                                                                 \
    #word, [](float x) { return math::word(math::simd<float>(x))[math::native_lanes - 1]; }, \
        [](float x) { return math::word(x); }                                                \
  }

const word_row words[] = {WORD(exp),   WORD(exp2), WORD(expm1), WORD(log),  WORD(log2), WORD(log10),
                          WORD(log1p), WORD(tanh), WORD(erf),   WORD(erfc), WORD(sin),  WORD(cos),
                          WORD(tan),   WORD(sqrt), WORD(cbrt),  WORD(atan)};

}  // namespace

TEST_CASE("words agree with values of 50 digits", "[math]") {
  std::ifstream file(SINTER_REPOSITORY "/tests/math/reference/words.csv");
  REQUIRE(file.good());
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    const auto comma = line.find(','), second = line.find(',', comma + 1);
    const std::string name = line.substr(0, comma);
    const float x = std::strtof(line.c_str() + comma + 1, nullptr);
    const double want = std::strtod(line.c_str() + second + 1, nullptr);
    const word_row* row = nullptr;
    for (const word_row& candidate : words)
      if (name == candidate.name) row = &candidate;
    INFO(line);
    REQUIRE(row != nullptr);
    CHECK(ulps(row->packet(x), want) <= 4);
    CHECK(ulps(row->scalar(x), want) <= 4);
    ++rows;
  }
  CHECK(rows == 16 * 24);
}

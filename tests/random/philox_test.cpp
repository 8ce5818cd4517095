// tests/random/philox_test.cpp: Philox against the known answers of Random123, and keys, words and wide products.
#include "../catch.hpp"

#include <sinter/random.hpp>

using namespace sinter;

// kat_vectors of Random123, the authors' library.
static_assert(philox4x32({{0, 0, 0, 0}}, 0) == philox_block{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
static_assert(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~std::uint64_t{0}) ==
              philox_block{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
static_assert(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822) ==
              philox_block{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});

TEST_CASE("philox gives the known answers at run time too") {
  volatile std::uint32_t zero = 0;
  CHECK(philox4x32({{zero, zero, zero, zero}}, zero).word[0] == 0x6627e8d5u);
  CHECK(philox4x32({{0x243f6a88u + zero, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822).word[3] ==
        0x24126ea1u);
}

TEST_CASE("the words of an element do not depend on where a vector starts") {
  const random_key key{7, 3};
  std::uint32_t all[64];
  detail::random_words<1>(key, 0, all);
  for (int start = 0; start < 40; ++start) {
    std::uint32_t part[16];
    detail::random_words<1>(key, start, part);
    for (int i = 0; i < 16; ++i) REQUIRE(part[i] == all[start + i]);
    std::uint32_t pair[2];
    if (start < 30) {
      detail::random_words<2>(key, start, pair);
      CHECK(pair[0] == all[2 * start]);
      CHECK(pair[1] == all[2 * start + 1]);
    }
  }
  std::uint32_t far[4];
  detail::random_words<4>(key, index_t{1} << 40, far);
  CHECK(far[0] == philox4x32({{0, 1u << 8, 3, 0}}, 7).word[0]);
}

TEST_CASE("a generator hands out one key per draw, and copies continue alike") {
  generator gen(42, 5);
  CHECK(gen.next() == random_key{42, 5});
  CHECK(gen.next() == random_key{42, 6});
  generator copy = gen;
  CHECK(copy.next() == gen.next());
  CHECK(gen.offset() == 8);
  generator a = gen.split();
  generator b = gen.split();
  CHECK(a.seed() != b.seed());
  CHECK(a.seed() != gen.seed());
}

TEST_CASE("multiply_high is the high half of the product") {
  CHECK(detail::multiply_high(~std::uint64_t{0}, ~std::uint64_t{0}) == ~std::uint64_t{0} - 1);
  CHECK(detail::multiply_high(std::uint64_t{1} << 63, 6) == 3);
  CHECK(detail::multiply_high(0x123456789abcdef0, 0xfedcba9876543210) == 0x121fa00ad77d7422);
}

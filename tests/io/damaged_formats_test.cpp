// tests/io/damaged_formats_test.cpp: safetensors and .npy files cut at each length and with bytes changed are read
// rightly or refused, and take no more memory than files of their size may.
#include "../catch.hpp"
#include "formats.hpp"

#include <cstdlib>
#include <new>
#include <random>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

thread_local std::size_t largest = 0;  ///< request to operator new

/// Fails if more is asked for at once, or of the arena, than a file of so many bytes may need: some vectors of the
/// header, conversions in bounded pieces, elements that become up to eight times as wide.
void check_memory(std::size_t file_size) {
  const std::size_t constant = std::size_t{3} << 20;
  if (largest > constant + 64 * file_size) FAIL("operator new was asked for " << largest << " bytes");
  if (memory<cpu>().peak_bytes > constant + 64 * file_size)
    FAIL("tensors took " << memory<cpu>().peak_bytes << " bytes");
}

/// Reads the file in all ways; true unless it is refused.
bool reads_safetensors(const std::string& path, const std::string& bytes, std::size_t data_begin) {
  try {
    for (const bool map : {false, true}) {
      const safetensors file = read_safetensors(path, {.map = map});
      std::size_t total = 0;
      for (const std::string& name : file.names()) {
        const host_tensor e = file.entry(name).value;
        total += e.bytes.size();
        if (e.shape.size() == 1 && e.element != element_kind::other) {
          try {
            const auto x = file.get_as<double, 1>(name);
            if (static_cast<std::size_t>(x.numel()) * element_size(e.element) != e.bytes.size()) FAIL("wrong size");
          } catch (const io_error&) {  // 2^64 - 1 does not fit double exactly
          }
        }
      }
      if (total > bytes.size()) FAIL("tensors of " << total << " bytes in a file of " << bytes.size());
      if (data_begin != 0 && data_begin + total != bytes.size()) FAIL("a tensor got lost");
    }
    return true;
  } catch (const io_error& e) {
    if (std::string_view(e.what()).substr(0, path.size()) != path) FAIL("no file in the message: " << e.what());
    return false;
  }
}

bool reads_npy(const std::string& path) {
  try {
    return !described_npy(path).empty();
  } catch (const io_error& e) {
    if (std::string_view(e.what()).substr(0, path.size()) != path) FAIL("no file in the message: " << e.what());
    return false;
  }
}

/// Calls check(bytes) for the file cut at each length, and for `changes` copies with one to four bytes changed.
template <class F>
void damage(const std::string& bytes, int changes, std::mt19937& random, const F& check) {
  const auto checked = [&](const std::string& now) {
    largest = 0;
    reset_peak_memory<cpu>();
    check(now);
    check_memory(now.size());
  };
  for (std::size_t size = 0; size < bytes.size(); ++size) checked(bytes.substr(0, size));
  for (int i = 0; i < changes; ++i) {
    std::string now = bytes;
    for (unsigned k = 1 + random() % 4; k > 0; --k) {
      const std::size_t at = random() % now.size();
      switch (random() % 3) {
        case 0:
          now[at] = static_cast<char>(random());
          break;
        case 1:  // what means something in a header
          now[at] = std::string_view("0123456789[]{}(),:\"'\\ <>")[random() % 24];
          break;
        default:
          now[at] = static_cast<char>(static_cast<unsigned char>(now[at]) ^ 1u << random() % 8);
      }
    }
    checked(now);
  }
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  largest = std::max(largest, size);
  return std::malloc(size != 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* p = operator new(size, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

TEST_CASE("damaged safetensors files are read rightly or refused") {
  const folder dir;
  std::mt19937 random(1);
  int read = 0, refused = 0;
  const std::string path = dir.file("x.safetensors");
  for (const format_case& c : format_cases(".safetensors")) {
    if (!c.expected.starts_with("ok")) continue;
    damage(c.bytes, 400, random, [&](const std::string& bytes) {
      detail::write_file(path, bytes);
      reads_safetensors(path, bytes, 0) ? ++read : ++refused;
    });
  }
  CHECK(read > 50);
  CHECK(refused > 3000);
}

TEST_CASE("headers that claim 100 MB in a file of 100 bytes allocate nothing for it") {
  const folder dir;
  std::string header = "\xff\xe0\xf5\x05" + std::string(96, '{');  // 99999999, little-endian
  header.replace(4, 4, 4, '\0');
  const std::string text = R"({"t":{"dtype":"F32","shape":[25000000],"data_offsets":[0,100000000]}})";
  std::string elements(8, '\0');
  elements[0] = static_cast<char>(text.size());
  elements += text;
  elements.resize(100);
  for (const std::string& bytes : {header, elements}) {
    const std::string path = dir.file("x.safetensors", bytes);
    largest = 0;
    reset_peak_memory<cpu>();
    const std::size_t before = memory<cpu>().peak_bytes;
    CHECK_FALSE(reads_safetensors(path, bytes, 0));
    CHECK(largest < 4096);
    CHECK(memory<cpu>().peak_bytes == before);
  }
}

TEST_CASE("safetensors files whose elements were changed are read as they are") {
  const folder dir;
  std::mt19937 random(2);
  const std::string path = dir.file("x.safetensors");
  write_safetensors(path, {{"a", tensor<float, 1>{1, 2, 3}}, {"b", tensor<bool, 1>{true, false}}});
  std::string bytes = detail::read_file(path);
  const std::size_t data_begin = bytes.size() - 14;
  for (int i = 0; i < 200; ++i) {
    bytes[data_begin + random() % 14] = static_cast<char>(random());
    detail::write_file(path, bytes);
    REQUIRE(reads_safetensors(path, bytes, data_begin));
    for (const bool map : {false, true}) {
      const safetensors file = read_safetensors(path, {.map = map});
      const tensor a = file.get<float, 1>("a");
      REQUIRE(std::memcmp(a.data(), bytes.data() + data_begin, 12) == 0);
      REQUIRE(file.get<bool, 1>("b")(1) == (bytes[data_begin + 13] != 0));
    }
  }
}

TEST_CASE("damaged npy files are read rightly or refused") {
  const folder dir;
  std::mt19937 random(3);
  int read = 0, refused = 0;
  const std::string path = dir.file("x.npy");
  for (const format_case& c : format_cases(".npy")) {
    if (!c.expected.starts_with("ok")) continue;
    damage(c.bytes, 250, random, [&](const std::string& bytes) {
      detail::write_file(path, bytes);
      reads_npy(path) ? ++read : ++refused;
    });
  }
  CHECK(read > 100);
  CHECK(refused > 3000);
}

// tests/cuda/runtime/run_kernels.cpp: in a program with this file, kernels on the fake runtime do what their PTX says.
// The program must hold PTX as text: nvcc -arch=compute_80 -no-compress. What has been misused by the end makes it
// fail.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "fake_inside.hpp"
#include "ptx.hpp"

namespace {

using namespace fake_cuda;

/// What the compiler registers for a file.
struct wrapper {
  std::uint32_t magic, version;
  const char* data;
};
struct fat_header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};

std::string text_in(const void* binary) {
  const auto& w = *static_cast<const wrapper*>(binary);
  const auto& h = *reinterpret_cast<const fat_header*>(w.data);
  if (w.magic != 0x466243B1 || h.magic != 0xBA55ED50) throw std::runtime_error("PTX: not a fat binary");
  const std::string all(w.data, h.header_bytes + h.bytes);
  const std::size_t begin = all.find(".version");
  if (begin == std::string::npos)
    throw std::runtime_error("PTX: none in the program, or compressed; compile with -arch=compute_80 -no-compress");
  return all.substr(begin, all.find('\0', begin) - begin);
}

class ptx_runner final : public kernel_runner {
 public:
  ptx_runner() { runner() = this; }
  ~ptx_runner() override {
    const auto found = misuses();
    for (const std::string& m : found) std::fprintf(stderr, "misuse: %s\n", m.c_str());
    std::fflush(nullptr);  // what the tests have said, too
    if (!found.empty()) std::_Exit(1);
  }

  std::vector<char> parameters(const void* binary, const std::string& kernel, void** arguments) override {
    const auto& list = of(binary).parameters_of(kernel);
    std::vector<char> all(list.empty() ? 0 : list.back().offset + list.back().bytes);
    for (std::size_t k = 0; k < list.size(); ++k) std::memcpy(all.data() + list[k].offset, arguments[k], list[k].bytes);
    return all;
  }
  void run(const void* binary, const launch& l, const char* parameters) override {
    of(binary).run(l.kernel, {l.blocks, l.threads, l.shared_bytes}, parameters, [&l](std::uintptr_t at) {
      const auto [begin, end] = reachable(reinterpret_cast<const void*>(at), l.gpu);
      return ptx::span{reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(end)};
    });
  }

 private:
  const ptx::module& of(const void* binary) {
    auto& m = modules_[binary];
    if (m == nullptr) m = std::make_unique<ptx::module>(text_in(binary));
    return *m;
  }
  std::map<const void*, std::unique_ptr<ptx::module>> modules_;
};
ptx_runner one;

}  // namespace

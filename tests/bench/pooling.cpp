// tests/bench/pooling.cpp: pooling and its gradient beside a copy of memory. Usage: pooling [NAME]
//
// Prints GB of x and y (gradients: of dx, dy and saved places) per second of processor time, one thread, the best of
// nine runs of every pass; NAME picks rows that contain it. tests/bench/pooling_torch.py prints PyTorch's.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  f();
  for (int i = 0; i < 9; ++i) {
    const std::clock_t begin = std::clock();  // processor time: the machine may be busy
    f();
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = seconds < best ? seconds : best;
  }
  return best;
}

struct layer {
  const char* name;
  bool is_max;
  index_t batch, channels, extent, kernel, stride, padding;  ///< a kernel of 0: to one element
};

template <class Op>
void measure(const layer& l, const Op& op) {
  generator gen(1);
  const auto random = [&](index_t extent) {
    return randn<float>(gen, {l.batch, extent, extent, l.channels}).permute({0, 3, 1, 2});
  };
  const auto x = random(l.extent), dx = random(l.extent);
  const auto shape = op.shape(x.shape());
  const auto y = random(shape[2]), g = random(shape[2]);
  const auto e = op.extents_of(x.shape(), shape);
  cpu_impl::thread_pool& pool = cpu_impl::host_pool();
  const cpu_impl::tile_epilogue none;
  double infer = 0, forward = 0, backward = 0;
  const double floats = static_cast<double>(x.numel() + y.numel()), bytes = static_cast<double>(y.numel());
  if constexpr (requires { op.when; }) {
    const auto places = op.template new_places<cpu>(y.numel(), e.taps());
    const auto memory = cpu_impl::memory_of(places);
    infer = best_seconds([&] { cpu_impl::max_pool<float>(e, x.data(), y.data(), {}, none, pool); });
    forward = best_seconds([&] { cpu_impl::max_pool<float>(e, x.data(), y.data(), memory, none, pool); });
    backward = best_seconds([&] { cpu_impl::max_pool_gradient<float>(e, g.data(), memory, dx.data(), false, pool); });
    std::printf("%-28s %8.1f %8.1f %8.1f\n", l.name, 4e-9 * floats / infer, 1e-9 * (4 * floats + bytes) / forward,
                1e-9 * (4 * floats + bytes) / backward);
  } else {
    const auto divisor = op.divisor;
    infer = best_seconds([&] { cpu_impl::avg_pool<float>(e, divisor, x.data(), y.data(), none, pool); });
    backward = best_seconds([&] { cpu_impl::avg_pool_gradient<float>(e, divisor, g.data(), dx.data(), false, pool); });
    std::printf("%-28s %8.1f %8s %8.1f\n", l.name, 4e-9 * floats / infer, "", 4e-9 * floats / backward);
  }
  std::printf("%-28s %8.2f %8.2f %8.2f ms\n", "", 1e3 * infer, 1e3 * forward, 1e3 * backward);
  std::fflush(stdout);
}

void measure(const layer& l) {
  using namespace sinter::ops;
  const adaptive_window<2> one{1};
  const sliding_window<2> window{std::max<index_t>(l.kernel, 1), std::max<index_t>(l.stride, 1), l.padding, 1, false};
  if (l.is_max && l.kernel > 0) measure(l, max_pool_op<2, sliding_window<2>>(window, save_places::always));
  else if (l.is_max) measure(l, max_pool_op<2, adaptive_window<2>>(one, save_places::always));
  else if (l.kernel > 0) measure(l, avg_pool_op<2, sliding_window<2>>(window, {0, true}));
  else measure(l, avg_pool_op<2, adaptive_window<2>>(one));
}

}  // namespace

int main(int argc, char** argv) {
  const char* const wanted = argc > 1 ? argv[1] : "";
  set_num_threads(1);
  const auto a = ones<float>({16, 64, 112, 112}), b = zeros<float>(a.shape());
  const double copy = best_seconds([&] { std::memcpy(b.data(), a.data(), static_cast<std::size_t>(a.numel()) * 4); });
  std::printf("%-28s %8.1f\n", "memcpy", 8e-9 * static_cast<double>(a.numel()) / copy);
  std::printf("%-28s %8s %8s %8s\n", "pooling", "infer", "forward", "backward");
  for (const layer& l : {
           layer{"max 3 s2 p1 64 112 b16", true, 16, 64, 112, 3, 2, 1},
           layer{"max 2 s2 64 112 b16", true, 16, 64, 112, 2, 2, 0},
           layer{"max 2 s2 16 32 b128", true, 128, 16, 32, 2, 2, 0},
           layer{"max 3 s1 p1 192 28 b16", true, 16, 192, 28, 3, 1, 1},
           layer{"max 2 s2 24 56 b4", true, 4, 24, 56, 2, 2, 0},
           layer{"max 2 s2 256 14 b4", true, 4, 256, 14, 2, 2, 0},
           layer{"max global 512 7 b32", true, 32, 512, 7, 0, 0, 0},
           layer{"avg 3 s2 p1 64 112 b16", false, 16, 64, 112, 3, 2, 1},
           layer{"avg 2 s2 64 112 b16", false, 16, 64, 112, 2, 2, 0},
           layer{"avg 2 s2 16 32 b128", false, 128, 16, 32, 2, 2, 0},
           layer{"avg 3 s1 p1 192 28 b16", false, 16, 192, 28, 3, 1, 1},
           layer{"avg global 512 7 b32", false, 32, 512, 7, 0, 0, 0},
       })
    if (std::strstr(l.name, wanted) != nullptr) measure(l);
}

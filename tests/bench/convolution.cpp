// tests/bench/convolution.cpp: convolutions and their gradients beside a product of matrices. Usage: convolution [NAME]
//
// Prints GFLOP per second of processor time, one thread, the best of five runs of every pass; NAME picks rows that
// contain it.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <sinter/sinter.hpp>

using namespace sinter;
using cpu_impl::conv_shape;

namespace {

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  f();
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();  // processor time: the machine may be busy
    f();
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = seconds < best ? seconds : best;
  }
  return best;
}

struct layer {
  const char* name;
  index_t batch, channels, filters, extent, kernel, stride, groups;
};

void measure(const layer& l) {
  const index_t padding = l.kernel / 2, out = (l.extent + 2 * padding - l.kernel) / l.stride + 1;
  const conv_shape s{l.batch,
                     l.channels,
                     l.filters,
                     l.groups,
                     {1, l.extent, l.extent},
                     {1, out, out},
                     {1, l.kernel, l.kernel},
                     {1, l.stride, l.stride},
                     {0, padding, padding},
                     {1, 1, 1}};
  generator gen(1);
  const auto x = randn<float>(gen, {l.batch, l.extent, l.extent, l.channels});
  const auto w = randn<float>(gen, {l.filters, l.channels / l.groups, l.kernel, l.kernel});
  const auto y = randn<float>(gen, {l.batch, out, out, l.filters});
  const auto dx = zeros_like(x), dw = zeros_like(w);
  const auto ws = cpu_impl::dense_weights(s);
  cpu_impl::thread_pool& pool = cpu_impl::host_pool();
  const double work = 2e-9 * static_cast<double>(w.numel()) * static_cast<double>(l.batch * out * out);
  const double forward =
      best_seconds([&] { cpu_impl::conv_forward<float>(s, x.data(), w.data(), ws, y.data(), false, {}, pool); });
  const double data =
      best_seconds([&] { cpu_impl::conv_backward_data<float>(s, y.data(), w.data(), ws, dx.data(), false, {}, pool); });
  const double weights = best_seconds(
      [&] { cpu_impl::conv_backward_weights<float>(s, x.data(), y.data(), dw.data(), ws, nullptr, false, pool); });
  std::printf("%-24s %8.1f %8.1f %8.1f\n", l.name, work / forward, work / data, work / weights);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const wanted = argc > 1 ? argv[1] : "";
  set_num_threads(1);
  generator gen(1);
  const auto a = randn<float>(gen, {1024, 1024}), b = randn<float>(gen, {1024, 1024});
  tensor<float, 2> c = zeros_like(a);
  std::printf("%-24s %8.1f\n", "matmul 1024", 2.147483648 / best_seconds([&] { c = matmul(a, b); }));
  std::printf("%-24s %8s %8s %8s\n", "convolution", "forward", "data", "weights");
  for (const layer& l : {
           layer{"3x3 64 56 b16", 16, 64, 64, 56, 3, 1, 1},
           layer{"3x3 128 28 b16", 16, 128, 128, 28, 3, 1, 1},
           layer{"3x3 256 14 b16", 16, 256, 256, 14, 3, 1, 1},
           layer{"3x3 512 7 b16", 16, 512, 512, 7, 3, 1, 1},
           layer{"3x3 16 32 b128", 128, 16, 16, 32, 3, 1, 1},
           layer{"1x1 64-256 56 b16", 16, 64, 256, 56, 1, 1, 1},
           layer{"1x1 256-64 56 b16", 16, 256, 64, 56, 1, 1, 1},
           layer{"7x7 s2 3-64 224 b16", 16, 3, 64, 224, 7, 2, 1},
           layer{"5x5 3-32 32 b128", 128, 3, 32, 32, 5, 1, 1},
           layer{"3x3 s2 128 56 b16", 16, 128, 128, 56, 3, 2, 1},
           layer{"3x3 depthwise 64 56 b16", 16, 64, 64, 56, 3, 1, 64},
       })
    if (std::strstr(l.name, wanted) != nullptr) measure(l);
}

// tests/bench/convolution.cpp: convolutions and their gradients beside a product of matrices. Usage: convolution [NAME]
//
// Prints for each pass GFLOP per second of processor time, one thread, of plain sums of products (exact_convolution)
// and of what is chosen without that, run in turns, the best of five each; then how much faster the latter is, and for
// both the root mean square of the error relative to that of the result, in units of 1e-7. NAME picks rows that contain
// it.
#include <cmath>
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
double seconds_of(F f) {
  const std::clock_t begin = std::clock();  // processor time: the machine may be busy
  f();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

struct layer {
  const char* name;
  index_t batch, channels, filters, extent, kernel, stride, groups;
};

using image = tensor<float, 4>;

double error_of(const image& got, const tensor<double, 4>& expected) {
  const tensor<double, 4> wide = cast<double>(got);
  return std::sqrt(sum(square(wide - expected)).item() / sum(square(expected)).item());
}

/// Prints a pass, where pass(element) computes `result` in that element type.
template <class Pass>
void measure_pass(double work, const image& result, const tensor<double, 4>& expected, Pass pass) {
  double plain = 1e9, chosen = 1e9;
  for (int i = 0; i < 6; ++i) {
    const double exact_seconds = seconds_of([&] {
      const exact_convolution exact;
      pass(0.f);
    });
    const double seconds = seconds_of([&] { pass(0.f); });
    if (i == 0) continue;  // memory and caches are warm now
    plain = exact_seconds < plain ? exact_seconds : plain;
    chosen = seconds < chosen ? seconds : chosen;
  }
  pass(0.);
  const double error = error_of(result, expected);
  {
    const exact_convolution exact;
    pass(0.f);
  }
  std::printf(" | %7.1f %7.1f %5.2f %4.1f %4.1f", work / plain, work / chosen, plain / chosen,
              1e7 * error_of(result, expected), 1e7 * error);
  std::fflush(stdout);
}

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
  const image x = relu(randn<float>(gen, {l.batch, l.extent, l.extent, l.channels}));
  const image w = randn<float>(gen, {l.filters, l.channels / l.groups, l.kernel, l.kernel});
  const image dy = randn<float>(gen, {l.batch, out, out, l.filters});
  const image y = zeros_like(dy), dx = zeros_like(x), dw = zeros_like(w);
  const auto wide = [](const image& t) { return tensor<double, 4>(cast<double>(t)); };
  const auto x_wide = wide(x), w_wide = wide(w), dy_wide = wide(dy), y_wide = wide(y), dx_wide = wide(dx),
             dw_wide = wide(dw);
  const auto ws = cpu_impl::dense_weights(s);
  cpu_impl::thread_pool& pool = cpu_impl::host_pool();
  const double work = 2e-9 * static_cast<double>(w.numel()) * static_cast<double>(l.batch * out * out);
  const auto pick = [](auto of, const auto& narrow, const auto& other) -> const auto& {
    if constexpr (std::is_same_v<decltype(of), float>) return narrow;
    else return other;
  };
  std::printf("%-22s", l.name);
  measure_pass(work, y, y_wide, [&](auto t) {
    cpu_impl::conv_forward<decltype(t)>(s, pick(t, x, x_wide).data(), pick(t, w, w_wide).data(), ws,
                                        pick(t, y, y_wide).data(), false, {}, pool);
  });
  measure_pass(work, dx, dx_wide, [&](auto t) {
    cpu_impl::conv_backward_data<decltype(t)>(s, pick(t, dy, dy_wide).data(), pick(t, w, w_wide).data(), ws,
                                              pick(t, dx, dx_wide).data(), false, {}, pool);
  });
  measure_pass(work, dw, dw_wide, [&](auto t) {
    cpu_impl::conv_backward_weights<decltype(t)>(s, pick(t, x, x_wide).data(), pick(t, dy, dy_wide).data(),
                                                 pick(t, dw, dw_wide).data(), ws, nullptr, false, pool);
  });
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const wanted = argc > 1 ? argv[1] : "";
  set_num_threads(1);
  generator gen(1);
  const auto a = randn<float>(gen, {1024, 1024}), b = randn<float>(gen, {1024, 1024});
  tensor<float, 2> c = matmul(a, b);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) best = std::min(best, seconds_of([&] { c = matmul(a, b); }));
  std::printf("%-22s   %7.1f\n", "matmul 1024", 2.147483648 / best);
  std::printf("%-22s", "convolution");
  for (const char* const pass : {"forward", "data", "weights"})
    std::printf(" | %-7s %7s %5s %9s", pass, "chosen", "ratio", "errors");
  std::printf("\n");
  for (const layer& l : {
           layer{"3x3 16 32 b128", 128, 16, 16, 32, 3, 1, 1},  // ResNet-56
           layer{"3x3 32 16 b128", 128, 32, 32, 16, 3, 1, 1},
           layer{"3x3 64 8 b128", 128, 64, 64, 8, 3, 1, 1},
           layer{"3x3 64 56 b16", 16, 64, 64, 56, 3, 1, 1},  // ResNet-50
           layer{"3x3 128 28 b16", 16, 128, 128, 28, 3, 1, 1},
           layer{"3x3 256 14 b16", 16, 256, 256, 14, 3, 1, 1},
           layer{"3x3 512 7 b16", 16, 512, 512, 7, 3, 1, 1},
           layer{"5x5 96-256 27 b16", 16, 96, 256, 27, 5, 1, 1},  // AlexNet
           layer{"5x5 64-192 27 b16", 16, 64, 192, 27, 5, 1, 1},
           layer{"3x3 192-384 13 b128", 128, 192, 384, 13, 3, 1, 1},
           layer{"3x3 256-384 13 b16", 16, 256, 384, 13, 3, 1, 1},
           layer{"3x3 384 13 b16", 16, 384, 384, 13, 3, 1, 1},
           layer{"3x3 384-256 13 b16", 16, 384, 256, 13, 3, 1, 1},
           layer{"5x5 32 15 b128", 128, 32, 32, 15, 5, 1, 1},  // AlexNet-R
           layer{"5x5 32-64 7 b128", 128, 32, 64, 7, 5, 1, 1},
           layer{"3x3 256 14 b1", 1, 256, 256, 14, 3, 1, 1},  // few tiles
           layer{"3x3 512 7 b1", 1, 512, 512, 7, 3, 1, 1},
           layer{"3x3 512 7 b4", 4, 512, 512, 7, 3, 1, 1},
           layer{"3x3 64 14 b1", 1, 64, 64, 14, 3, 1, 1},
           layer{"3x3 64 5 b128", 128, 64, 64, 5, 3, 1, 1},
           layer{"1x1 64-256 56 b16", 16, 64, 256, 56, 1, 1, 1},  // never by tiles
           layer{"1x1 256-64 56 b16", 16, 256, 64, 56, 1, 1, 1},
           layer{"7x7 s2 3-64 224 b16", 16, 3, 64, 224, 7, 2, 1},
           layer{"5x5 3-32 32 b128", 128, 3, 32, 32, 5, 1, 1},
           layer{"3x3 s2 128 56 b16", 16, 128, 128, 56, 3, 2, 1},
           layer{"3x3 depthwise 64 56", 16, 64, 64, 56, 3, 1, 64},
       })
    if (std::strstr(l.name, wanted) != nullptr) measure(l);
}

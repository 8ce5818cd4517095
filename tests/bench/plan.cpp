// tests/bench/plan.cpp: steps that nn::plan predicts beside steps as measured: nn::distributed trains a model that
// sleeps, over threads with emulated links, or with an argument over MPI.
//
//   g++ -std=c++20 -O2 -march=native -I include -isystem /usr/include/eigen3 tests/bench/plan.cpp -pthread
//   bash tests/bench/plan.sh
#include <sinter/io/svg.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "timing.hpp"

using namespace sinter;

namespace {

constexpr double forward_seconds = 0.06, optimizer_seconds = 0.02;

void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Its backward sleeps before it has the gradient.
struct sleeper : nn::module<sleeper> {
  variable<float, 1> weight;
  double seconds = 0;

  sleeper() = default;
  sleeper(index_t bytes, double s) : weight(variable(zeros<float>({bytes / 4}))), seconds(s) {}
  template <class X>
  variable<float, 1> operator()(const X& x) const {
    const auto f = with_gradient([](const auto& a, const auto& w) { return with_saved(a + 1.f, w); },
                                 [s = seconds](const auto& g, const auto& w) {
                                   rest(s);
                                   return gradients(g, zeros_like(w));
                                 });
    return f(x, weight);
  }
  SINTER_MEMBERS(weight, seconds);
};

struct chain : nn::module<chain> {
  sleeper a{64 << 10, 0.05}, b{32 << 10, 0.02}, c{128 << 10, 0.06}, d{64 << 10, 0.03};
  sleeper e{64 << 10, 0.05}, f{16 << 10, 0.04}, g{96 << 10, 0.04}, h{48 << 10, 0.03};

  variable<float, 0> loss(const tensor<float, 1>& x) const { return sum(h(g(f(e(d(c(b(a(x))))))))); }
  SINTER_MEMBERS(a, b, c, d, e, f, g, h);
};

struct run_of_steps {
  std::vector<nn::step_trace> traces;
  std::vector<double> seconds;
};

/// The first two steps do not count: the buckets are put together anew after the first.
template <class C>
run_of_steps train(C& world, const nn::distributed_options& options, int steps) {
  chain model;
  nn::distributed ranks(model, world, options);
  const tensor<float, 1> x{1.f};
  run_of_steps run;
  for (int step = -2; step < steps; ++step) {
    const double ms = milliseconds([&] {
      ranks.begin(1);
      rest(forward_seconds);
      ranks.backward(model.loss(x), 1);
      rest(optimizer_seconds);
    });
    if (step < 0) continue;
    run.seconds.push_back(1e-3 * ms);
    run.traces.push_back(ranks.trace());
    run.traces.back().optimizer = optimizer_seconds;
  }
  return run;
}

const nn::distributed_options in_buckets{.bucket_bytes = 160 << 10, .first_bucket_bytes = 64 << 10};

nn::step_trace trace_of_one_rank() {
  thread_communicator one = thread_communicator::make(1)[0];
  return nn::median_trace(train(one, {.bucket_bytes = 1, .first_bucket_bytes = 1}, 5).traces);
}

nn::step_prediction predict(const nn::step_trace& trace, const link_fit& fit, int ranks) {
  return nn::predict_step(trace, {.between_nodes = fit.link, .call = fit.call}, ranks,
                          {.collectives = nn::collective_choice::ring,
                           .bucket_bytes = in_buckets.bucket_bytes,
                           .first_bucket_bytes = in_buckets.first_bucket_bytes});
}

double emulate(int R, const link_model& link, int steps) {
  std::vector<double> seconds;
  run_ranks(R, {.latency = std::chrono::duration<double>(link.latency), .bandwidth = link.bandwidth},
            [&](thread_communicator world) {
              const run_of_steps run = train(world, in_buckets, steps);
              if (world.rank() == 0) seconds = run.seconds;
            });
  return median(seconds);
}

int over_threads(int steps, const char* picture) {
  std::vector<line_plot> plots;
  const nn::step_trace trace = trace_of_one_rank();
  double worst = 0;
  for (const link_model& link : {link_model{0.2e-3, 8e6}, {0.1e-3, 1.5e6}, {1e-3, 100e6}}) {
    std::vector<link_sample> samples;
    for (const int R : {2, 4})
      run_ranks(R, {.latency = std::chrono::duration<double>(link.latency), .bandwidth = link.bandwidth},
                [&](thread_communicator world) {
                  const auto measured = measure_all_reduce(world, {4, 1 << 14, 1 << 16, 1 << 18}, 5);
                  if (world.rank() == 0) samples.insert(samples.end(), measured.begin(), measured.end());
                });
    const link_fit fit = fit_link(samples);
    std::printf(
        "links of %.3f ms and %.2f MB/s; fitted on 2 and 4 ranks: %.3f ms, %.2f MB/s and %.3f ms a call, error %.1f "
        "%%\n",
        1e3 * link.latency, 1e-6 * link.bandwidth, 1e3 * fit.link.latency, 1e-6 * fit.link.bandwidth, 1e3 * fit.call,
        100 * fit.error);
    char name[64];
    std::snprintf(name, sizeof name, "%.1f ms and %.1f MB/s", 1e3 * link.latency, 1e-6 * link.bandwidth);
    line_plot plot{std::string("ms of a step, links of ") + name,
                   "log2 of the number of ranks",
                   {{"predicted", {}}, {"measured", {}}}};
    std::printf("%6s %13s %12s %8s %11s %9s\n", "ranks", "predicted ms", "measured ms", "off", "exposed ms", "hidden");
    for (const int R : {2, 4, 8, 16, 32, 64}) {
      const nn::step_prediction p = predict(trace, fit, R);
      const double measured = emulate(R, link, steps), off = p.step / measured - 1;
      worst = std::max(worst, std::fabs(off));
      for (const auto i : {0u, 1u}) {
        plot.lines[i].x.push_back(std::log2(R));
        plot.lines[i].y.push_back(1e3 * (i == 0 ? p.step : measured));
      }
      std::printf("%6d %13.1f %12.1f %6.1f %% %11.1f %7.0f %%\n", R, 1e3 * p.step, 1e3 * measured, 100 * off,
                  1e3 * p.exposed, 100 * (1 - p.exposed / p.communication));
      std::fflush(stdout);
    }
    plots.push_back(plot);
  }
  if (picture != nullptr) write_plots(picture, plots);
  std::printf("largest difference %.1f %% (floor 10 %%, target 3 %%)\n", 100 * worst);
  return worst < 0.1 ? 0 : 1;
}

#if SINTER_WITH_MPI
/// Runs of other numbers of ranks have left their samples in the file. This one is predicted from them.
int over_mpi(const char* file) {
  mpi_communicator world;
  const bool first = world.rank() == 0;
  const std::vector<index_t> sizes{4, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20};
  const auto measured = measure_all_reduce(world, sizes, 21);
  const double step = median(train(world, in_buckets, 5).seconds);
  if (!first) return 0;
  std::vector<link_sample> before;
  std::ifstream in(file);
  for (link_sample s; in >> s.bytes >> s.seconds >> s.messages;) before.push_back(s);
  std::printf("MPI, %d ranks\n", world.size());
  if (!before.empty()) {
    const link_fit fit = fit_link(before);
    std::printf("fitted on fewer ranks: %.1f us, %.2f GB/s and %.1f us a call, error %.0f %%\n", 1e6 * fit.link.latency,
                1e-9 * fit.link.bandwidth, 1e6 * fit.call, 100 * fit.error);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double p = fit.call + measured[i].messages * fit.link.latency + fit.link.transfer(measured[i].bytes);
      std::printf("sum of %7d bytes: predicted %9.1f us, measured %9.1f us, off %.0f %%\n", static_cast<int>(sizes[i]),
                  1e6 * p, 1e6 * measured[i].seconds, 100 * (p / measured[i].seconds - 1));
    }
    const double p = predict(trace_of_one_rank(), fit, world.size()).step;
    std::printf("step: predicted %.1f ms, measured %.1f ms, off %.1f %%\n", 1e3 * p, 1e3 * step, 100 * (p / step - 1));
  }
  std::ofstream out(file, std::ios::app);
  for (const link_sample& s : measured) out << s.bytes << ' ' << s.seconds << ' ' << s.messages << '\n';
  return 0;
}
#endif

}  // namespace

/// plan [STEPS [PICTURE]], or over MPI: plan FILE
int main(int argc, char** argv) {
  set_num_threads(1);
#if SINTER_WITH_MPI
  return over_mpi(argc > 1 ? argv[1] : "plan_samples.txt");
#else
  return over_threads(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? argv[2] : nullptr);
#endif
}

// tests/bench/pipeline.cpp: a training step on one device and over two equal stages, one thread each; and the bubble of
// eight stages that sleep.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/pipeline.cpp -pthread
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>
#include <vector>

#include "timing.hpp"

using namespace sinter;

namespace {

const auto loss = [](const auto& a, const auto& b) { return mse_loss(a, b); };

/// `first` and `second` take the same time.
template <class A, class B, class X, class Y>
void compare(const char* name, const A& first, const B& second, const X& x, const Y& y) {
  const nn::sequential one{first, second};
  const nn::pipeline pipe{first.template to<numa<0>>(), second.template to<numa<1>>()};
  optim::sgd of_one(one, {.lr = 0.01}), of_pipe(pipe, {.lr = 0.01});
  const auto there = x.template to<numa<0>>();
  nn::pipeline_report report;
  for (const bool all_first : {false, true}) {
    std::vector<double> ours, theirs, ratios, bubbles, simulated;
    for (int turn = -2; turn < 9; ++turn) {
      const double a = milliseconds([&] {
        of_one.zero_grad();
        variable(loss(one(x), y)).backward();
        of_one.step();
      });
      const double b = milliseconds([&] {
        of_pipe.zero_grad();
        report = pipe.step(there, y, loss, {.schedule = all_first ? nn::schedule::gpipe : nn::schedule::one_f_one_b});
        of_pipe.step();
      });
      if (turn < 0) continue;  // memory is new
      ours.push_back(a);
      theirs.push_back(b);
      ratios.push_back(a / b);
      bubbles.push_back(report.bubble);
      simulated.push_back(report.bubble_simulated);
    }
    std::printf(
        "%s, %s: one device %.1f ms, two stages %.1f ms, %.2f times as fast; bubble %.3f, simulated %.3f, "
        "formula %.3f\n",
        name, all_first ? "gpipe" : "1f1b", median(ours), median(theirs), median(ratios), median(bubbles),
        median(simulated), report.bubble_formula);
  }
  std::cout << report;
}

struct sleeping final : sinter::detail::stage_work {
  void take(nn::stage_action) override {}
  void send(nn::stage_action) override {}
  void compute(nn::stage_action a) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(a.way == nn::direction::forward ? 5 : 10));
  }
};

void sleep_in_stages(int p, index_t m) {
  for (const bool all_first : {false, true}) {
    const nn::schedule plan = all_first ? nn::schedule::gpipe(p, m) : nn::schedule::one_f_one_b(p, m);
    std::vector<sleeping> stages(static_cast<std::size_t>(p));
    std::vector<sinter::detail::stage_work*> all;
    for (sleeping& s : stages) all.push_back(&s);
    cpu_impl::stage_threads threads(std::vector<int>(static_cast<std::size_t>(p), -1));
    sinter::detail::schedule_run run(plan, all);
    run.run(threads);
    nn::pipeline_report r;
    r.samples = m;
    r.stages.resize(static_cast<std::size_t>(p));
    nn::detail::fill_times(r, plan, run);
    std::printf("%d sleeping stages, %d microbatches, %s: bubble %.3f, simulated %.3f, formula %.3f\n", p,
                static_cast<int>(m), all_first ? "gpipe" : "1f1b", r.bubble, r.bubble_simulated, r.bubble_formula);
  }
}

}  // namespace

int main() {
  set_num_threads(1);
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  generator gen(1);
  const auto dense = [&] {
    return nn::sequential{nn::linear(512, 512, gen), nn::relu(), nn::linear(512, 512, gen), nn::relu(),
                          nn::linear(512, 512, gen), nn::relu()};
  };
  compare("six dense layers of 512, batch 1024", dense(), dense(), randn<float>(gen, {1024, 512}),
          randn<float>(gen, {1024, 512}));
  const auto convolutions = [&] {
    return nn::sequential{nn::conv2d(32, 32, 3, gen, {.padding = 1}), nn::relu(),
                          nn::conv2d(32, 32, 3, gen, {.padding = 1}), nn::relu()};
  };
  compare("four convolutions of 32 channels on 32 x 32, batch 64", convolutions(), convolutions(),
          randn<float>(gen, {64, 32, 32, 32}), randn<float>(gen, {64, 32, 32, 32}));
  sleep_in_stages(8, 8);
  sleep_in_stages(8, 32);
}

// tests/parallel/placement_cost_test.cpp: the placements found are those that trying all of them finds.
#include <cmath>
#include <random>

#include <sinter/parallel/placement_cost.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

nn::placement_costs random_costs(std::mt19937& random, int segments, int devices, bool limited) {
  std::uniform_int_distribution<int> of_work(1, 20), of_transfer(0, 8);
  nn::placement_costs c(segments, devices);
  for (int d = 0; d < devices; ++d) {
    for (int s = 0; s < segments; ++s) {
      c.work(s, d) = of_work(random);
      c.update(s, d) = of_work(random) / 4;
      c.bytes(s, d) = of_work(random);
      for (int e = 0; e < devices; ++e) c.transfer(s, e, d) = of_transfer(random);
    }
    if (limited) c.capacity(d) = std::uniform_int_distribution<int>(5, 12 * segments)(random);
  }
  return c;
}

/// Calls f with each assignment of devices to segments.
template <class F>
void each_assignment(int segments, int devices, const F& f) {
  std::vector<int> device(static_cast<std::size_t>(segments), 0);
  while (true) {
    f(device);
    std::size_t s = 0;
    while (s < device.size() && ++device[s] == devices) device[s++] = 0;
    if (s == device.size()) return;
  }
}

}  // namespace

TEST_CASE("placements of random costs are those of an exhaustive search", "[parallel]") {
  std::mt19937 random(1);
  int pipelines = 0, impossible = 0;
  for (int round = 0; round < 400; ++round) {
    const int segments = std::uniform_int_distribution<int>(1, 7)(random);
    const int devices = std::uniform_int_distribution<int>(1, 3)(random);
    const int m = std::uniform_int_distribution<int>(1, 9)(random);
    const nn::placement_costs c = random_costs(random, segments, devices, round % 2 == 1);
    INFO("round " << round << ": " << segments << " segments, " << devices << " devices, " << m << " microbatches");
    std::vector<double> serial;
    double pipelined = INFINITY;
    each_assignment(segments, devices, [&](const std::vector<int>& device) {
      if (!nn::fits(c, device)) return;
      serial.push_back(nn::serial_seconds(c, device));
      pipelined = std::min(pipelined, nn::pipelined_seconds(c, device, m));
    });
    std::sort(serial.begin(), serial.end());

    const auto best = nn::best_serial(c, 5);
    REQUIRE(best.size() == std::min<std::size_t>(5, serial.size()));
    for (std::size_t i = 0; i < best.size(); ++i) {
      CHECK(best[i].seconds == serial[i]);
      CHECK(nn::serial_seconds(c, best[i].device) == best[i].seconds);
      CHECK(nn::fits(c, best[i].device));
      for (std::size_t j = 0; j < i; ++j) CHECK(best[i].device != best[j].device);
    }
    const nn::placement pipe = nn::best_pipelined(c, m);
    CHECK(pipe.seconds == pipelined);
    CHECK(pipe.device.empty() == std::isinf(pipelined));
    if (pipe.device.empty()) ++impossible;
    else {
      CHECK(nn::fits(c, pipe.device));
      CHECK(nn::pipelined_seconds(c, pipe.device, m) == pipelined);
      pipelines += pipe.device.front() != pipe.device.back();
    }
  }
  CHECK(pipelines > 50);
  CHECK(impossible > 10);
}

TEST_CASE("a pipeline balances its stages and a serial step does not", "[parallel]") {
  nn::placement_costs c(4, 2);
  for (int s = 0; s < 4; ++s) {
    c.work(s, 0) = 1;
    c.work(s, 1) = 1.25;
    c.transfer(s, 1, 0) = 0.125;
  }
  CHECK(nn::best_serial(c)[0].device == std::vector<int>{0, 0, 0, 0});
  CHECK(nn::best_pipelined(c, 1).device == std::vector<int>{0, 0, 0, 0});
  CHECK(nn::best_pipelined(c, 8).device == std::vector<int>{0, 0, 1, 1});
  CHECK(nn::best_pipelined(c, 8).seconds == 4.5 + 7 * 2.5);
  c.capacity(0) = 10;
  for (int s = 0; s < 4; ++s) c.bytes(s, 0) = 4;
  CHECK(nn::best_serial(c)[0].seconds == 4.5);
}

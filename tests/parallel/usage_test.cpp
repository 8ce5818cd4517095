// tests/parallel/usage_test.cpp: what a meter says of devices whose work is known.
#include <chrono>
#include <sstream>
#include <thread>

#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

TEST_CASE("a meter counts copies and their bytes", "[parallel]") {
  generator gen(1);
  const tensor x = randn<float, d0>(gen, {100, 10});
  static_cast<void>(x.to<d1>());  // before: not counted
  const usage_meter<d0, d1> meter;
  for (int i = 0; i < 3; ++i) static_cast<void>(x.to<d1>());
  static_cast<void>(x.to<cpu>());
  static_cast<void>(x.to<d1>().to<cpu>());
  const usage_report r = meter.report();
  REQUIRE(r.transfers.size() == 3);
  CHECK((r.transfers[0].from == device_name<d0>() && r.transfers[0].to == device_name<d1>()));
  CHECK(r.transfers[0].copies == 4);
  CHECK(r.transfers[0].bytes == 4 * 4000);
  CHECK((r.transfers[1].from == device_name<d0>() && r.transfers[1].to == "cpu"));
  CHECK(r.transfers[1].bytes == 4000);
  CHECK((r.transfers[2].from == device_name<d1>() && r.transfers[2].to == "cpu"));
  CHECK(r.transfer_bytes() == 6 * 4000);
  CHECK(r.transfer_seconds() > 0);
  std::ostringstream text;
  text << r;
  CHECK(text.str().find(device_name<d0>() + " => cpu: 1 copies, 0.004 MB") != std::string::npos);
}

TEST_CASE("a meter takes the peak of memory from its beginning", "[parallel]") {
  const tensor held = zeros<float, d0>({1 << 18});
  usage_meter<d0> meter;
  CHECK(meter.report().devices[0].peak_bytes == memory<d0>().bytes_in_use);
  {
    const tensor more = zeros<float, d0>({1 << 18});
  }
  CHECK(meter.report().devices[0].peak_bytes >= memory<d0>().bytes_in_use + (std::size_t{1} << 20));
  meter.restart();
  CHECK(meter.report().devices[0].peak_bytes == memory<d0>().bytes_in_use);
}

#if !SINTER_WITH_CUDA
TEST_CASE("a device is busy while its threads run tasks", "[parallel]") {
  const auto sleep = [](index_t) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  set_num_threads<d0>(3);
  auto& pool = cpu_impl::pool_of<d0>();
  usage_meter<d0, d1> meter;
  pool.parallel_for(3, sleep);
  pool.parallel_for(1, [&](index_t) { pool.parallel_for(1, sleep); });                     // counted once
  pool.parallel_for(3, [&](index_t) { cpu_impl::pool_of<d1>().parallel_for(1, sleep); });  // on both devices
  const usage_report r = meter.report();
  CHECK(r.devices[0].busy >= 0.06);
  CHECK(r.devices[0].busy <= r.seconds);
  CHECK(r.devices[0].idle == Approx(r.seconds - r.devices[0].busy));
  CHECK(r.devices[1].busy >= 0.06);  // three threads worked there
  meter.restart();
  sleep(0);
  CHECK(meter.report().devices[0].busy == 0);
  CHECK(meter.report().devices[0].idle >= 0.02);
  set_num_threads<d0>(1);
}

TEST_CASE("nothing is counted without a meter", "[parallel]") {
  auto& pool = cpu_impl::pool_of<d0>();
  const auto before = pool.usage().times.load();
  pool.parallel_for(4, [](index_t) {});
  CHECK(pool.usage().times.load() == before);
}
#endif

TEST_CASE("docs: devices.md, usage", "[parallel]") {
  generator gen(1);
  const auto split =
      nn::placed<nn::cut<0, d0>, nn::cut<1, d1>>(nn::sequential{nn::linear(8, 8, gen), nn::linear(8, 2, gen)});
  const tensor x = randn<float, d0>(gen, {16, 8});
  std::ostringstream out;

  // [docs:usage]
  const usage_meter<d0, d1> meter;  // from here on
  for (int step = 0; step < 10; ++step) split(x);
  const usage_report r = meter.report();
  double idle = r.devices[1].idle;             // seconds in which d1 did not compute
  std::size_t peak = r.devices[1].peak_bytes;  // most bytes in use on d1
  std::int64_t copied = r.transfer_bytes();    // between d0, d1 and the cpu
  out << r;                                    // a line for each device and each pair of devices
  // [docs:end]
  CHECK((idle > 0 && peak > 0 && copied == 10 * 16 * 8 * 4));
}

// Measures training steps of one rank, and predicts what they would take on 1 to 4096 ranks.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/07_plan.cpp -o plan -pthread
// ctest: --steps 12 --out /tmp
// ctest: --steps 5 --batch 16 --latency 5 --bandwidth 3 --out /tmp
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define SINTER_WITH_DATA 1   // datasets and files, which sinter.hpp leaves out otherwise
#define SINTER_WITH_RANKS 1  // and training on several ranks
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "digits.hpp"

using namespace sinter;

const char* const help =
    R"(Trains a convolutional network on handwritten digits on one rank for some steps, and predicts the step on 1 to 4096
ranks with as many samples each: its time, what of it is waiting for sums of gradients, the best size of buckets, and what
stragglers and failures cost. The network between ranks is given, or without --latency it is measured: sums over sockets
between 2 and 4 ranks on this machine.

  --latency US          of a message between nodes, in microseconds; needs --bandwidth
  --bandwidth GB/S      of a rank while all ranks of its node send, in 1e9 bytes per second; needs --latency
  --ranks-per-node N    default: 1
  --node-latency US     of a message within a node (default: 1)
  --node-bandwidth GB/S of a rank within its node (default: 10)
  --collectives C       cheapest: the best algorithm for each size; ring: as the sockets of this library (default: cheapest)
  --bucket KIB          gradients summed in one call, in KiB (default: the best)
  --slowdown P          of the backward pass by sums that are under way, in % (default: 0)
  --failure-hours H     mean time between failures of one rank (default: 50000, as of the GPUs on which Llama 3 was trained:
                        419 in 54 days on 16384); 0: none
  --checkpoint S        seconds of a checkpoint (default: measured)
  --restart S           seconds from a failure until training goes on (default: 300)
  --steps N             measured steps (default: 40); 3 more come before
  --batch N             samples per step of a rank (default: 48)
  --threads N           of the rank (default: 1)
  --seed N              of the initial weights and the order of the samples (default: 1)
  --data DIR            folder with digits.csv, or with the idx files of MNIST (default: $SINTER_DATA, else examples/data)
  --out DIR             folder for plan.svg (default: where this program is)
  --help                this text

Exit code: 0; 1 if something went wrong; 2 for a wrong option.
)";

struct settings {
  int steps = 40, batch = 48, threads = 1, ranks_per_node = 1;
  double latency = -1, bandwidth = -1, node_latency = 1, node_bandwidth = 10;
  double bucket = 0, slowdown = 0, failure_hours = 50000, checkpoint = -1, restart = 300;
  std::uint64_t seed = 1;
  std::string collectives = "cheapest", data, out = ".";
};

double seconds_of(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// (N, 1, side, side) => (N, 10). Each rank's batch norms see its own samples.
auto make_network(index_t side, generator& gen) {
  const index_t left = side / 4;  // of the side, after two poolings
  return nn::sequential{nn::conv2d(1, 16, 5, gen, {.padding = 2}),
                        nn::batch_norm2d<float>(16),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d(16, 32, 3, gen, {.padding = 1}),
                        nn::batch_norm2d<float>(32),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d(32, 64, 3, gen, {.padding = 1}),
                        nn::batch_norm2d<float>(64),
                        nn::relu(),
                        nn::flatten(),
                        nn::dropout(0.3, gen),
                        nn::linear(64 * left * left, 10, gen)};
}

// ---- what is measured

struct measured {
  std::vector<nn::step_trace> steps;
  double checkpoint = 0;
};

// Steps of the only rank there is. Each gradient is a bucket of its own, so that any size can be tried afterwards.
measured measure_steps(const digits& data, const settings& s) {
  generator gen(s.seed);
  auto network = make_network(data.train_x.extent(3), gen);
  thread_communicator world = thread_communicator::make(1)[0];
  nn::distributed ranks(network, world, {.bucket_bytes = 1, .first_bucket_bytes = 1});
  optim::adamw optimizer(network, {.lr = 0.005, .weight_decay = 0.01});
  data_loader loader(tensor_dataset(data.train_x, data.train_y),
                     {.batch_size = s.batch, .shuffle = true, .drop_last = true, .seed = s.seed});
  measured m;
  int step = -3;  // the first steps make memory, and put the buckets together
  while (step < s.steps)
    for (const auto& [x, y] : loader) {
      if (step == s.steps) break;
      ranks.begin(x.extent(0));
      ranks.backward(variable(cross_entropy(network(x), y)), x.extent(0));
      const double update = seconds_of([&] {
        optimizer.step();
        optimizer.zero_grad();
      });
      if (step++ < 0) continue;
      m.steps.push_back(ranks.trace());
      m.steps.back().optimizer = update;
    }
  const std::string file = s.out + "/plan_example.ckpt";
  m.checkpoint = seconds_of([&] { run_checkpoint(file).save(network, optimizer); });
  std::remove(file.c_str());
  return m;
}

// Of sums over sockets. The ranks are threads here; to the sockets they are processes.
link_fit measure_network() {
  char folder[] = "/tmp/sinter-XXXXXX";
  if (::mkdtemp(folder) == nullptr) throw io_error("no folder can be made in /tmp");
  std::random_device random;
  std::string secret;
  for (int i = 0; i < 32; ++i) secret += "0123456789abcdef"[random() % 16];
  ::setenv("SINTER_COMM_SECRET", secret.c_str(), 1);
  std::vector<link_sample> samples;
  for (const int size : {2, 4}) {
    const std::string address = "unix:" + std::string(folder) + "/" + std::to_string(size);
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          socket_communicator world({.rank = rank, .size = size, .address = address, .checked_calls = 0});
          const auto all = measure_all_reduce(world, {4, 1 << 12, 1 << 15, 1 << 18, 1 << 21}, 21);
          if (rank == 0) samples.insert(samples.end(), all.begin(), all.end());
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
    for (std::thread& t : threads) t.join();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    std::remove(address.substr(5).c_str());
  }
  ::rmdir(folder);
  return fit_link(samples);
}

// ---- what is shown

void draw(const std::string& file, const nn::plan_report& report) {
  std::vector<double> at, efficiency, low, high, step, computation, exposed, stragglers;
  for (const nn::plan_row& r : report.rows) {
    const double one = 100 * r.prediction.computation * (1 - r.failures.loss);
    at.push_back(std::log2(r.ranks));
    efficiency.push_back(100 * r.efficiency());
    low.push_back(one / r.step_at_low_bandwidth);
    high.push_back(one / r.step_at_high_bandwidth);
    step.push_back(1e3 * r.step());
    computation.push_back(1e3 * r.prediction.computation);
    exposed.push_back(1e3 * r.prediction.exposed);
    stragglers.push_back(1e3 * r.stragglers);
  }
  const std::string ranks = "log2 of the number of ranks";
  write_plots(file, {{"efficiency, %",
                      ranks,
                      {{"predicted", efficiency, at}, {"bandwidth -20 %", low, at}, {"bandwidth +20 %", high, at}}},
                     {"a step, ms",
                      ranks,
                      {{"all", step, at},
                       {"computation", computation, at},
                       {"waiting for sums", exposed, at},
                       {"stragglers", stragglers, at}}}});
}

void show(const settings& s, const measured& m, const network_model& network) {
  const nn::step_trace trace = nn::median_trace(m.steps);
  index_t bytes = 0;
  for (const auto& b : trace.buckets) bytes += b.bytes;
  std::printf("one rank, medians of %d steps of %d samples: forward %.2f ms, backward %.2f ms, optimizer %.2f ms\n",
              static_cast<int>(m.steps.size()), s.batch, 1e3 * trace.forward, 1e3 * trace.backward,
              1e3 * trace.optimizer);
  std::printf("%d gradients, %.1f KiB together; a checkpoint takes %.1f ms\n\n", static_cast<int>(trace.buckets.size()),
              static_cast<double>(bytes) / 1024, 1e3 * s.checkpoint);
  const nn::plan_report report =
      nn::plan(m.steps, network,
               {.collectives = s.collectives == "ring" ? nn::collective_choice::ring : nn::collective_choice::cheapest,
                .bucket_bytes = static_cast<index_t>(s.bucket * 1024),
                .slowdown = s.slowdown / 100,
                .checkpoint_seconds = s.checkpoint,
                .hours_to_failure = s.failure_hours,
                .restart_seconds = s.restart});
  std::cout << report;
  const std::string file = s.out + "/plan.svg";
  draw(file, report);
  std::printf(
      "\nNot modelled: contention in the network, its topology, what a rank computes to begin and end a sum, reading\n"
      "batches, batch norms over all ranks. Predictions were compared with emulated links up to 64 ranks, not beyond.\n"
      "picture: %s\n",
      file.c_str());
}

int main(int argc, char** argv) {
  command_line line("plan", help, argc, argv);
  settings s;
  s.out = folder_of(argv[0]);
  s.data = default_data(__FILE__);
  line.take("--latency", s.latency, 0, 1e9);
  line.take("--bandwidth", s.bandwidth, 1e-9, 1e9);
  line.take("--ranks-per-node", s.ranks_per_node, 1, 1e6);
  line.take("--node-latency", s.node_latency, 0, 1e9);
  line.take("--node-bandwidth", s.node_bandwidth, 1e-9, 1e9);
  line.take("--collectives", s.collectives);
  line.take("--bucket", s.bucket, 1, 1e9);
  line.take("--slowdown", s.slowdown, 0, 1e4);
  line.take("--failure-hours", s.failure_hours, 0, 1e12);
  line.take("--checkpoint", s.checkpoint, 0, 1e9);
  line.take("--restart", s.restart, 0, 1e9);
  line.take("--steps", s.steps, 1, 1e6);
  line.take("--batch", s.batch, 1, 1e6);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--data", s.data);
  line.take("--out", s.out);
  line.finish();
  if ((s.latency < 0) != (s.bandwidth < 0)) line.refuse("--latency and --bandwidth are given together or not at all");
  if (s.collectives != "cheapest" && s.collectives != "ring")
    line.refuse("--collectives is cheapest or ring, not '" + s.collectives + "'");
  try {
    set_num_threads(s.threads);
    const digits data = read_digits(s.data);
    if (s.batch > data.train_y.numel())
      line.refuse("--batch " + std::to_string(s.batch) + ": there are " + std::to_string(data.train_y.numel()) +
                  " samples");
    network_model network{.within_node = {1e-6 * s.node_latency, 1e9 * s.node_bandwidth},
                          .ranks_per_node = s.ranks_per_node};
    if (s.latency >= 0) {
      network.between_nodes = {1e-6 * s.latency, 1e9 * s.bandwidth};
      std::printf("network as given: %.2f us, %.2f GB/s\n", s.latency, s.bandwidth);
    } else {
      const link_fit fit = measure_network();
      network.between_nodes = fit.link;
      network.call = fit.call;
      std::printf("network as sockets of this machine: %.1f us, %.2f GB/s, %.1f us a sum; fitted within %.0f %%\n",
                  1e6 * fit.link.latency, 1e-9 * fit.link.bandwidth, 1e6 * fit.call, 100 * fit.error);
    }
    const measured m = measure_steps(data, s);
    if (s.checkpoint < 0) s.checkpoint = m.checkpoint;
    show(s, m, network);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plan: %s\n", e.what());
    return 1;
  }
}

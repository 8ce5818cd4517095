// tests/mpi/ranks.cpp: what the ranks of tests/mpi/mpi.py do. Each says in a closing line how it ended.
#include <sinter/ranks/distributed.hpp>
#include <sinter/ranks/hierarchical/communicator.hpp>
#include <sinter/ranks/mpi/communicator.hpp>
#include <sinter/sinter.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "../ranks/communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;

namespace {

/// Each rank computes what all of them together should have, too.
void train(mpi_communicator ranks) {
  generator gen(static_cast<std::uint64_t>(ranks.rank() + 1)), same(1);
  nn::linear<double> model(5, 3, gen), whole(5, 3, same);
  nn::distributed wrapped(model, ranks, {.first_bucket_bytes = 8});
  const index_t n = 10;
  tensor<double, 2> x = zeros<double>({n, 5});
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < 5; ++j) x(i, j) = value_of<double>(static_cast<int>(i), j);
  optim::sgd one(whole, {.lr = 0.1}), all(model, {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    one.zero_grad();
    all.zero_grad();
    variable<double, 0> of_all = mean(square(tanh(whole(x))));
    of_all.backward();
    const tensor mine = x.slice(0, ranks.rank(), n, ranks.size());
    variable<double, 0> loss = mean(square(tanh(model(mine))));
    wrapped.backward(loss, mine.extent(0));
    one.step();
    all.step();
  }
  for (index_t i = 0; i < 15; ++i)
    require(std::abs(model.weight.value()(i / 5, i % 5) - whole.weight.value()(i / 5, i % 5)) < 1e-13, "weights");
}

void play(const std::string& scenario, mpi_communicator ranks) {
  const int me = ranks.rank();
  const auto sum = [&](index_t n) { ranks.all_reduce(ones<float>({n}), reduction::sum, "bucket").get(); };
  if (scenario == "calls") {
    check_all(ranks, false);
    check_all(hierarchical_communicator(ranks, 2), false);
    tensor<float, 1> x{me == ranks.size() - 1 ? std::nanf("") : 1.f};
    return require(std::isnan(ranks.all_reduce(x, reduction::max).get()(0)), "the maximum is NaN where an element is");
  }
  if (scenario == "train") return train(ranks);
  if (scenario == "huge") {  // more elements than an int counts
    const index_t n = (index_t{1} << 31) + 5;
    auto x = tensor<std::uint8_t, 1>::uninitialized({{n}});
    std::fill_n(x.data(), n, static_cast<std::uint8_t>(me));
    if (me == 0) x.data()[0] = x.data()[n - 1] = 77;
    tensor y = ranks.broadcast(x, 0).get();
    return require(y.data()[0] == 77 && y.data()[n - 1] == 77 && y.data()[n / 2] == 0, "broadcast of 2^31 + 5 bytes");
  }
  ranks.barrier("begin").get();
  if (me == 1) {
    if (scenario == "kill") ::raise(SIGKILL);
    if (scenario == "stop") ::raise(SIGSTOP);
    if (scenario == "leave") return;
    if (scenario == "throw") throw std::runtime_error("disk full");
    if (scenario == "abort") ranks.abort("disk full");
    if (scenario == "order") ranks.broadcast(ones<float>({8}), 0, "weights").get();
    if (scenario == "message") ranks.receive<float>(3, 0, 6).get();
  }
  if (me == 0 && scenario == "message") ranks.send(ones<float>({3}), 1, 5).get();
  sum(me == 1 && scenario == "size" ? 9 : 8);
  for (int i = 0; i < 100; ++i) sum(1000);
}

}  // namespace

/// ranks SCENARIO TIMEOUT CHECKED_CALLS LARGEST_COUNT
int main(int, char** arguments) {
  std::string line = "fine";
  const std::string scenario = arguments[1];
  const mpi_options options{.timeout = std::chrono::duration<double>(std::atof(arguments[2])),
                            .checked_calls = std::atoi(arguments[3]),
                            .largest_count = std::atoi(arguments[4])};
  int rank = -1;
  try {
    mpi_communicator ranks(options);
    rank = ranks.rank();
    play(scenario, ranks);
  } catch (const communication_error& e) {
    line = "kind " + std::to_string(static_cast<int>(e.kind())) + " peer " + std::to_string(e.peer()) + " " + e.what();
  } catch (const std::exception& e) {
    line = e.what();
  }
  std::printf("rank %d closing: %s\n", rank, line.c_str());
  std::fflush(stdout);
  return line == "fine" ? 0 : 1;
}

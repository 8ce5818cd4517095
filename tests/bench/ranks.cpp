// tests/bench/ranks.cpp: a training step of ResNet-56 on one rank and on two, one thread each, beside the same step
// without the wrapper in as many processes at the same time; then sums over two ranks, plain, with integrity and
// encrypted, and how fast one core seals and opens records.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/ranks.cpp -pthread
//   With encryption: -DSINTER_WITH_OPENSSL=1 ... -lcrypto. The argument "sums" leaves out ResNet-56.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <sinter/ranks.hpp>

#include "../../examples/models/resnet_cifar.hpp"
#include "timing.hpp"

using namespace sinter;

namespace {

using detail::protection;

/// f(communicator) in `size` processes that are joined by a socket.
void in_processes(int size, const std::function<void(socket_communicator&)>& f, protection by = protection::none) {
  const std::string address = "unix:/tmp/sinter-bench-" + std::to_string(::getpid());
  ::setenv("SINTER_COMM_SECRET", "a secret of the benchmark", 0);
  std::fflush(stdout);  // or each process would write it
  for (int rank = 0; rank < size; ++rank) {
    if (::fork() != 0) continue;
    int code = 0;
    try {
      socket_options o{.rank = rank, .size = size, .address = address};
      o.integrity = by != protection::none;
      o.encryption = by == protection::encryption;
      socket_communicator world(o);
      f(world);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      code = 1;
    }
    std::fflush(stdout);
    std::_Exit(code);
  }
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    ::wait(&status);
    if (status != 0) std::exit(1);
  }
}
double slowest(socket_communicator& world, double ms) {
  return world.all_reduce(tensor<double, 1>{ms}, reduction::max).get().item();
}

void steps(socket_communicator& world) {
  set_num_threads(1);
  generator gen(1);
  const auto plain = models::resnet_cifar<models::resnet_variant::torch>(56, gen);
  const auto model = plain.to<cpu>();
  const index_t batch = 64;
  const tensor x = randn<float>(gen, {batch, 3, 32, 32});
  const tensor labels = randint(gen, 0, 10, {batch});
  nn::distributed ranks(model, world);
  optim::sgd of_plain = models::make_optimizer(plain), of_model = models::make_optimizer(model);
  const auto alone = [&] {
    const variable loss = cross_entropy(plain(x), labels);
    of_plain.zero_grad();
    loss.backward();
    of_plain.step();
  };
  const auto together = [&] {
    ranks.begin(batch);
    const variable loss = cross_entropy(model(x), labels);
    of_model.zero_grad();
    ranks.backward(loss, batch);
    of_model.step();
  };
  std::vector<double> ours, theirs, ratios;
  for (int turn = -2; turn < 11; ++turn) {
    world.barrier().get();
    const double a = slowest(world, milliseconds(alone));
    world.barrier().get();
    const double b = slowest(world, milliseconds(together));
    if (turn < 0) continue;  // memory is new
    theirs.push_back(a);
    ours.push_back(b);
    ratios.push_back(a / b);
  }
  if (world.rank() == 0)
    std::printf(
        "ResNet-56, %d of %d samples each: without wrapper %.0f ms, distributed %.0f ms, rate %.3f; last pass %.0f ms, "
        "waited %.1f ms\n",
        world.size(), static_cast<int>(batch), median(theirs), median(ours), median(ratios),
        1e3 * ranks.trace().backward, 1e3 * ranks.trace().waited);
}

void sums(socket_communicator& world, const char* how) {
  for (const index_t bytes : {index_t{4096}, index_t{1} << 20, index_t{25} << 20}) {
    tensor<float, 1> x = zeros<float>({bytes / 4});
    std::vector<double> took;
    for (int turn = 0; turn < (bytes > 4096 ? 25 : 400); ++turn) {
      world.barrier().get();
      const double ms = milliseconds([&] { world.all_reduce(x).get(); });
      if (turn >= 2) took.push_back(slowest(world, ms));
    }
    const double ms = median(took);
    if (world.rank() == 0)
      std::printf("all_reduce of %8d bytes over 2 ranks (sockets, %s): %.3f ms, %.2f GB/s\n", static_cast<int>(bytes),
                  how, ms, static_cast<double>(bytes) / ms / 1e6);
  }
}

void records(protection by) {
  const std::vector<std::byte> data(detail::record_size, std::byte{1});
  std::vector<std::byte> sealed(data.size() + detail::tag_size), to(data.size());
  const detail::sha256_digest key{};
#if SINTER_WITH_OPENSSL
  const detail::make_record_cipher cipher = &detail::aes_gcm::make;
#else
  const detail::make_record_cipher cipher = nullptr;
#endif
  detail::record_seal out(by, key, true, cipher), in(by, key, false, cipher);
  std::vector<double> seal, open;
  for (int turn = 0; turn < 500; ++turn) {
    seal.push_back(milliseconds([&] { out.seal(data, sealed.data()); }));
    open.push_back(milliseconds([&] { in.open(sealed, to.data()); }));
  }
  const auto rate = [&](const std::vector<double>& ms) { return static_cast<double>(data.size()) / median(ms) / 1e6; };
  std::printf("records of 64 KiB, %s: sealed %.2f GB/s, opened %.2f GB/s\n", detail::text_of(by), rate(seal),
              rate(open));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || std::string(arguments[1]) != "sums") {
    in_processes(1, steps);
    in_processes(2, steps);
  }
  for (const protection by : {protection::none, protection::integrity, protection::encryption}) {
    if (by == protection::encryption && !SINTER_WITH_OPENSSL) continue;
    in_processes(2, [by](socket_communicator& world) { sums(world, detail::text_of(by)); }, by);
    if (by != protection::none) records(by);
  }
}

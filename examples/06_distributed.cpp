// Trains the convolutional network of 03_convnet on several ranks: processes of this machine or of several.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/06_distributed.cpp -o distributed -pthread
// ctest: --ranks 2 --epochs 3 --mark 0
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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
    R"(Trains a convolutional network on handwritten digits on several ranks, each with a part of every batch. The losses
are those of one rank with whole batches, up to rounding. The run is saved as it goes on: if it is killed, the same
command goes on from there, also with another number of ranks.

With MPI (built with SINTER_WITH_MPI=1) mpirun starts the ranks: mpirun -n 4 ./06_distributed. Without it they are joined
by sockets: --ranks 4 starts four processes on this machine; with SINTER_RANK, SINTER_SIZE, SINTER_ADDRESS and
SINTER_COMM_SECRET in the environment the program is one rank of several, see docs/communicators.md.

  --ranks N          processes to start, without MPI (default: 1)
  --epochs N         passes over the training set (default: 80, for MNIST 5)
  --batch N          samples per step of all ranks together (default: 48, for MNIST 120)
  --lr X             learning rate of Adam at the start (default: 0.005)
  --seed N           of the initial weights, the order of the samples and their shifts (default: 1)
  --threads N        of each rank (default: processors / ranks)
  --data DIR         folder with digits.csv, or with the idx files of MNIST (default: $SINTER_DATA, else examples/data)
  --checkpoint FILE  of the run; removed when it has ended well (default: distributed.ckpt where this program is)
  --save-every N     steps from one save to the next (default: 50)
  --timeout X        seconds after which a rank that waits for another gives up (default: 300)
  --double           compute in double: then the losses agree in all digits that are printed, while training in float
                     makes more of the last bits with each step
  --mark X           test accuracy to reach, % (default: 98.5, for MNIST 99)
  --help             this text

Exit code: 0; 1 if the test accuracy is too low, a rank was lost or something else went wrong; 2 for a wrong option.
)";

struct settings {
  int ranks = 1, epochs = 0, batch = 0, threads = 0, save_every = 50;
  std::uint64_t seed = 1;
  double lr = 0.005, mark = -1, timeout = 300;
  std::string data, checkpoint;
  bool in_double = false;
};

volatile std::sig_atomic_t asked_to_stop = 0;

// ---- the network

// (N, 1, side, side) => (N, 10). Its batch norms see the samples of all ranks.
template <class T, communicator C>
auto make_network(const C& world, index_t side, generator& gen) {
  const index_t left = side / 4;  // of the side, after two poolings
  const auto norm = [&](index_t channels) { return nn::sync_batch_norm(world, nn::batch_norm2d<T>(channels)); };
  return nn::sequential{nn::conv2d<T>(1, 16, 5, gen, {.padding = 2}),
                        norm(16),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d<T>(16, 32, 3, gen, {.padding = 1}),
                        norm(32),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d<T>(32, 64, 3, gen, {.padding = 1}),
                        norm(64),
                        nn::relu(),
                        nn::flatten(),
                        nn::dropout(0.3, gen),
                        nn::linear<T>(64 * left * left, 10, gen)};
}

// ---- training

// The part of the test images that is read rightly; each rank reads every size()-th.
template <class T, communicator C>
double accuracy(C& world, const auto& network, const digits& data) {
  const index_t n = data.test_y.numel(), part = 500 * world.size();
  const auto reader = infer(network);
  double right = 0;
  for (index_t begin = world.rank(); begin < n; begin += part) {
    const index_t end = std::min(begin + part, n);
    const tensor read = argmax(reader(cast<T>(data.test_x.slice(0, begin, end, world.size()))), 1);
    const tensor hits = sum(cast<double>(read == data.test_y.slice(0, begin, end, world.size())));
    right += hits.item();
  }
  return 100 * world.all_reduce(tensor<double, 1>{right}, reduction::sum, "right").get().item() /
         static_cast<double>(n);
}

// A line for each rank.
template <communicator C>
void print_ranks(C& world, const auto& ranks, double seconds) {
  const nn::distributed_report r = ranks.report();
  const tensor all =
      world.all_gather(tensor<double, 1>{r.time.waited, r.time.under_way, static_cast<double>(r.bytes)}).get();
  if (world.rank() != 0) return;
  std::printf("\nrank   computed   waited   communication   of it hidden   gradients sent\n");
  for (index_t i = 0; i < world.size(); ++i) {
    const double waited = all(3 * i), communicated = all(3 * i + 1);
    std::printf("%4d %8.1f s %6.1f s %13.1f s %12.0f %% %13.1f MB\n", static_cast<int>(i), seconds - waited, waited,
                communicated, communicated > 0 ? 100 * std::max(0., 1 - waited / communicated) : 100.,
                all(3 * i + 2) / 1e6);
  }
}

template <class T, communicator C>
int train(C& world, const digits& data, const settings& s) {
  const bool first = world.rank() == 0;
  const index_t side = data.train_x.extent(3);
  generator gen(s.seed);
  auto network = make_network<T>(world, side, gen);
  nn::distributed ranks(network, world);
  data_loader loader(tensor_dataset(data.train_x, data.train_y), {.batch_size = s.batch / world.size(),
                                                                  .shuffle = true,
                                                                  .drop_last = true,
                                                                  .seed = s.seed,
                                                                  .sampler = distributed_sampler(world)});
  optim::adamw optimizer(network, {.lr = s.lr, .weight_decay = 0.01});
  optim::lr_scheduler schedule(optimizer, optim::cosine_lr{.period = s.epochs * loader.size()});

  const run_checkpoint file(s.checkpoint);
  const auto save = [&] {
    if (first) file.save(network, optimizer, schedule, gen, loader);
  };
  if (file.exists()) {
    file.load(network, optimizer, schedule, gen, loader);
    if (first)
      std::printf("going on from %s: epoch %d, behind %d samples\n", s.checkpoint.c_str(),
                  static_cast<int>(loader.epoch()) + 1, static_cast<int>(loader.position().samples));
  }
  if (first)
    std::printf("%d parameters, %d training and %d test samples, batches of %d over %d ranks (%s)\n",
                static_cast<int>(network.parameter_count()), static_cast<int>(data.train_y.numel()),
                static_cast<int>(data.test_y.numel()), s.batch, world.size(), world.name().c_str());

  int steps = 0;
  double right = 0, seconds = 0;
  while (loader.epoch() < s.epochs) {
    const index_t epoch = loader.epoch() + 1;
    const auto start = std::chrono::steady_clock::now();
    const communication_time before = world.time_spent();
    const nn::distributed_run run = ranks.run(
        loader,
        [&](const auto& batch) {
          // Moves each image by a pixel or two, so that the network never sees the same one twice.
          const pictures moved = random_crop(gen, batch.inputs, {side, side}, {.padding = data.is_mnist() ? 2 : 1});
          return cross_entropy(network(cast<T>(moved)), batch.targets);
        },
        [&] {
          optimizer.step();
          optimizer.zero_grad();
          schedule.step();
          if (asked_to_stop) ranks.ask_to_stop();
          if (++steps % s.save_every == 0) save();
        });
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    seconds += spent;
    if (run.stopped) {
      save();
      if (first) std::printf("stopped; the same command goes on from %s\n", s.checkpoint.c_str());
      return 1;
    }
    const communication_time now = world.time_spent();
    const double under_way = now.under_way - before.under_way, waited = now.waited - before.waited;
    right = accuracy<T>(world, network, data);
    if (!first) continue;
    std::printf("epoch %3d  loss %.6f  test accuracy %.2f %%  %.0f images/s  %.0f %% of communication hidden\n",
                static_cast<int>(epoch), run.mean_loss, right, static_cast<double>(run.samples) / spent,
                100 * std::max(0., 1 - waited / under_way));
    std::fflush(stdout);
  }
  right = accuracy<T>(world, network, data);
  print_ranks(world, ranks, seconds);
  if (first) std::remove(s.checkpoint.c_str());
  if (right >= s.mark) return 0;
  if (first) std::fprintf(stderr, "distributed: the test accuracy is below %.1f %%\n", s.mark);
  return 1;
}

// One rank, from its data to its exit code.
template <class Connect>
int run_rank(settings s, const Connect& connect) {
  try {
    auto world = connect();
    const digits data = read_digits(s.data);
    const bool mnist = data.is_mnist();
    if (s.epochs == 0) s.epochs = mnist ? 5 : 80;
    if (s.batch == 0) s.batch = mnist ? 120 : 48;
    if (s.mark < 0) s.mark = mnist ? 99 : 98.5;
    if (const index_t samples = data.train_y.numel(); s.batch > samples) {
      if (world.rank() == 0)
        std::fprintf(stderr,
                     "distributed: --batch %d: there are only %d training samples in %s; give a number up to that\n",
                     s.batch, static_cast<int>(samples), s.data.c_str());
      return 2;
    }
    if (s.batch % world.size() != 0) {
      if (world.rank() == 0)
        std::fprintf(stderr, "distributed: --batch %d cannot be dealt out to %d ranks; give a multiple of %d\n",
                     s.batch, world.size(), world.size());
      return 2;
    }
    const int processors = static_cast<int>(std::thread::hardware_concurrency());
    set_num_threads(s.threads > 0 ? s.threads : std::max(1, processors / world.size()));
    return s.in_double ? train<double>(world, data, s) : train<float>(world, data, s);
  } catch (const communication_error& e) {
    std::fprintf(stderr, "distributed: %s\n  the same command goes on from %s, if it was saved\n", e.what(),
                 s.checkpoint.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "distributed: %s\n", e.what());
  }
  return 1;
}

#if !SINTER_WITH_MPI
// Starts the ranks as processes that find each other by a socket, and waits for them.
int start_ranks(const settings& s) {
  char folder[] = "/tmp/sinter-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    std::perror("distributed: mkdtemp");
    return 1;
  }
  std::random_device random;
  std::string secret;
  for (int i = 0; i < 32; ++i) secret += "0123456789abcdef"[random() % 16];
  ::setenv("SINTER_COMM_SECRET", secret.c_str(), 1);
  const std::string address = "unix:" + std::string(folder) + "/ranks";
  std::vector<pid_t> children;
  for (int rank = 0; rank < s.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0)
      std::_Exit([&] {
        const int code = run_rank(s, [&] {
          return socket_communicator(
              {.rank = rank, .size = s.ranks, .address = address, .timeout = std::chrono::duration<double>(s.timeout)});
        });
        std::fflush(stdout);
        return code;
      }());
    if (child < 0) {
      std::perror("distributed: fork");
      for (const pid_t one : children) ::kill(one, SIGTERM);
      break;
    }
    children.push_back(child);
  }
  int code = static_cast<int>(children.size()) == s.ranks ? 0 : 1;
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    while (::waitpid(children[rank], &status, 0) < 0) {  // a signal for the group: the ranks stop by themselves
    }
    if (WIFSIGNALED(status))
      std::fprintf(stderr, "distributed: rank %d was ended by signal %d\n", static_cast<int>(rank), WTERMSIG(status));
    code = std::max(code, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  std::remove((std::string(folder) + "/ranks").c_str());
  ::rmdir(folder);
  return code;
}
#endif

int main(int argc, char** argv) {
  command_line line("distributed", help, argc, argv, {"--double"});
  settings s;
  s.checkpoint = folder_of(argv[0]) + "/distributed.ckpt";
  s.data = default_data(__FILE__);
  line.take("--ranks", s.ranks, 1, 1024);
  line.take("--epochs", s.epochs, 1, 100000);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--lr", s.lr, 0, 100);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--data", s.data);
  line.take("--checkpoint", s.checkpoint);
  line.take("--save-every", s.save_every, 1, 1e9);
  line.take("--mark", s.mark, 0, 100);
  line.take("--timeout", s.timeout, 0.01, 1e6);
  s.in_double = line.has("--double");
  line.finish();
  std::signal(SIGTERM, [](int) { asked_to_stop = 1; });
  std::signal(SIGINT, [](int) { asked_to_stop = 1; });
#if SINTER_WITH_MPI
  if (s.ranks > 1)
    line.refuse("--ranks: this program was built with MPI; start it with mpirun -n " + std::to_string(s.ranks));
  return run_rank(s, [&] { return mpi_communicator({.timeout = std::chrono::duration<double>(s.timeout)}); });
#else
  if (std::getenv("SINTER_RANK") != nullptr)
    return run_rank(s, [&] {
      socket_options options = socket_options::from_environment();
      options.timeout = std::chrono::duration<double>(s.timeout);
      return socket_communicator(options);
    });
  return start_ranks(s);
#endif
}

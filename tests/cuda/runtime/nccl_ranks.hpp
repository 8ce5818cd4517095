// tests/cuda/runtime/nccl_ranks.hpp: ranks with a fake GPU each, checks of their calls, and models that they train.
#pragma once

#include <sinter/ranks.hpp>

#include <map>

#include "../../ranks/communicator_checks.hpp"
#include "checked.hpp"
#include "fake_nccl.hpp"

namespace nccl_ranks {

using namespace sinter;
using namespace std::chrono_literals;
using communicator_checks::require;
using communicator_checks::value_of;
using communicator_checks::values_of;

template <int I>
using on_gpu = nccl_communicator<cuda<I>>;

/// Calls f(world, gpus) on each rank; rank r has GPU r. Afterwards no communicator of NCCL is left. Errors: that of the
/// rank that failed first.
template <int Most = 2, class F>
void run_gpus(int ranks, const F& f, const nccl_options& options = {.timeout = 20s, .checked_calls = 3},
              const thread_options& host = {.timeout = 20s}) {
  fake_nccl::take_ended();
  run_ranks(ranks, host, [&](thread_communicator world) {
    const auto with = [&]<int I>(std::integral_constant<int, I>) {
      on_gpu<I> gpus(world, options);
      f(world, gpus);
    };
    if (world.rank() == 0) with(std::integral_constant<int, 0>());
    else if (world.rank() == 1) with(std::integral_constant<int, 1>());
    else if constexpr (Most > 2) with(std::integral_constant<int, 2>());
  });
  CHECK(fake_nccl::living() == 0);
}
template <class C>
struct device_of_ranks;
template <int I>
struct device_of_ranks<on_gpu<I>> {
  using type = cuda<I>;
};
template <class C>
using gpu_of = typename device_of_ranks<C>::type;

/// f() on each of two ranks, which throws on both; the errors by rank.
template <class F>
std::vector<communication_error> errors_of_two(const F& f, const nccl_options& options = {.timeout = 20s},
                                               const thread_options& host = {.timeout = 20s}) {
  std::mutex mutex;
  std::vector<std::pair<int, communication_error>> seen;
  run_gpus(
      2,
      [&](thread_communicator& world, auto& gpus) {
        const communication_error e = communicator_checks::error_of([&] { f(world, gpus); });
        const communication_error again = communicator_checks::error_of([&] { gpus.barrier().get(); });
        require(again.kind() == e.kind() && std::string(again.what()) == e.what(),
                std::string("the first failure stays: ") + e.what() + " and then " + again.what());
        require(e.rank() == gpus.rank(), "rank()");
        const std::lock_guard lock(mutex);
        seen.emplace_back(gpus.rank(), e);
      },
      options, host);
  REQUIRE(seen.size() == 2);
  if (seen[0].first == 1) std::swap(seen[0], seen[1]);
  return {seen[0].second, seen[1].second};
}

template <class T, class C>
void check_sums(C& gpus, index_t n) {
  using D = gpu_of<C>;
  const int R = gpus.size(), me = gpus.rank();
  const std::string what = std::string(element_name<T>()) + " x " + std::to_string(n);
  for (const bool is_max : {false, true}) {
    if (is_max && sizeof(T) == 2) continue;
    const auto x = values_of<T>(me, n).template to<D>();
    const auto total = gpus.all_reduce(x, is_max ? rank_reduction(reduction::max) : reduction::sum, "sums").get();
    require(device_pointer(total) == device_pointer(x), "all_reduce works in place, " + what);
    const auto here = x.template to<cpu>();
    for (index_t i = 0; i < n; ++i)
      require(communicator_checks::is_near(here(i), communicator_checks::sum_at<T>(R, i, is_max), false), what);
  }
  const auto part = gpus.reduce_scatter(values_of<T>(me, n * R).template to<D>(), "part").get().template to<cpu>();
  require(part.numel() == n, "length of reduce_scatter");
  for (index_t i = 0; i < n; ++i)
    require(communicator_checks::is_near(part(i), communicator_checks::sum_at<T>(R, me * n + i, false), false), what);
}

template <class T, class C>
void check_moves(C& gpus, index_t n) {
  using D = gpu_of<C>;
  const int R = gpus.size(), me = gpus.rank();
  const auto is = [&](const tensor<T, 1, D>& x, index_t from, int rank) {
    const auto here = x.template to<cpu>();
    for (index_t i = 0; i < n; ++i)
      if (here.data()[from + i] != value_of<T>(rank, i)) return false;
    return true;
  };
  const auto own = [&](int rank) { return values_of<T>(rank, n).template to<D>(); };
  for (int root = 0; root < R; ++root) require(is(gpus.broadcast(own(me), root, "root").get(), 0, root), "broadcast");
  const auto all = gpus.all_gather(own(me), "all").get();
  for (int r = 0; r < R; ++r) require(is(all, r * n, r), "all_gather");
  // Around the ring in both directions, twice; all ranks send first.
  const int next = (me + 1) % R, before = (me + R - 1) % R;
  std::vector<work<void>> sent;
  for (int tag = 0; tag < 2; ++tag) {
    sent.push_back(gpus.send(own(me + tag), next, tag));
    sent.push_back(gpus.send(own(me + 5), before, 7 + tag));
  }
  gpus.barrier("between").get();
  std::vector<work<tensor<T, 1, D>>> came;
  for (int tag = 0; tag < 2; ++tag) {
    came.push_back(gpus.template receive<T>(n, before, tag));
    came.push_back(gpus.template receive<T, D>(n, next, 7 + tag));
  }
  for (int tag = 0; tag < 2; ++tag) {
    require(is(came[std::size_t(2 * tag)].get(), 0, before + tag), "receive from the rank before");
    require(is(came[std::size_t(2 * tag + 1)].get(), 0, next + 5), "receive from the next rank");
  }
  for (auto& s : sent) s.get();
}

/// One part on D, one on the host.
template <device D>
auto plain_model(std::uint64_t seed) {
  generator gen(seed);
  nn::linear<float, D> first(5, 6, gen);
  nn::linear<float> last(6, 3, gen);
  return nn::sequential{first, nn::transfer<D, cpu>(), last};
}
/// The same with the buffers of a batch norm on D.
template <device D>
auto model_with_norm(std::uint64_t seed) {
  generator gen(seed);
  nn::linear<float, D> first(5, 6, gen);
  nn::linear<float> last(6, 3, gen);
  return nn::sequential{first, nn::batch_norm1d<float, D>(6), nn::transfer<D, cpu>(), last};
}
using values = std::map<std::string, std::vector<float>>;
template <class X>
std::vector<float> flat_values(const X& x) {
  const tensor here = eval(cast<float>(x.template to<cpu>())).flatten();
  return {here.data(), here.data() + here.numel()};
}
template <class M>
values gradients(const M& m) {
  values all;
  m.for_each_parameter([&](const std::string& name, const auto& p) {
    if (p.has_grad()) all[name] = flat_values(p.grad());
  });
  return all;
}
/// Rows begin, begin + step, ... of six samples.
inline std::pair<tensor<float, 2>, tensor<std::int64_t, 1>> samples(index_t begin, index_t step) {
  const index_t n = (6 - begin + step - 1) / step;
  auto x = zeros<float>({n, 5});
  auto y = zeros<std::int64_t>({n});
  for (index_t i = 0; i < n; ++i) {
    const index_t sample = begin + i * step;
    for (index_t j = 0; j < 5; ++j) x(i, j) = std::sin(float(sample * 5 + j));
    y(i) = sample * 7 % 3;
  }
  return {x, y};
}

}  // namespace nccl_ranks

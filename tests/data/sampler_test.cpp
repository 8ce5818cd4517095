// tests/data/sampler_test.cpp: shares of several ranks in an epoch, and loops that begin within one.
#include "../catch.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

using indices = std::vector<std::int64_t>;

/// Sample i is i.
auto numbers(index_t n) { return tensor_dataset(eval(arange<std::int64_t>(n)), zeros<std::int32_t>({n})); }

template <class B>
indices samples_of(const B& batch) {
  const auto& [x, y] = batch;
  return {x.span().begin(), x.span().end()};
}
/// A batch of every step of a loop.
template <class Loader>
std::vector<indices> loop_over(Loader& loader) {
  std::vector<indices> steps;
  for (const auto& batch : loader) steps.push_back(samples_of(batch));
  return steps;
}
indices joined(const std::vector<indices>& steps) {
  indices all;
  for (const indices& step : steps) all.insert(all.end(), step.begin(), step.end());
  return all;
}

/// What all ranks have in each step, in ascending order.
std::vector<indices> global_steps(index_t n, index_t ranks, loader_options options,
                                  const distributed_sampler_options& sampling, loader_position from = {}) {
  std::vector<indices> steps;
  for (index_t rank = 0; rank < ranks; ++rank) {
    options.sampler = distributed_sampler(rank, ranks, sampling);
    data_loader loader(numbers(n), options);
    loader.set_position(from);
    const auto mine = loop_over(loader);
    if (steps.size() < mine.size()) steps.resize(mine.size());
    for (std::size_t k = 0; k < mine.size(); ++k) steps[k].insert(steps[k].end(), mine[k].begin(), mine[k].end());
  }
  for (indices& step : steps) std::sort(step.begin(), step.end());
  return steps;
}

struct fake_world {
  int rank() const { return 2; }
  int size() const { return 3; }
};

}  // namespace

TEST_CASE("shares are those of PyTorch's DistributedSampler") {
  std::ifstream file(SINTER_REPOSITORY "/tests/data/reference/sampler.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream in(line);
    index_t samples = 0, ranks = 0, rank = 0;
    bool drop_last = false;
    in >> samples >> ranks >> rank >> drop_last;
    indices expected;
    for (std::int64_t i = 0; in >> i;) expected.push_back(i);
    const distributed_sampler sampler(rank, ranks, {.drop_last = drop_last});
    data_loader loader(numbers(samples), {.batch_size = 2, .prefetch = 0, .sampler = sampler});
    CAPTURE(line);
    CHECK(joined(loop_over(loader)) == expected);
    CHECK(sampler.count(samples) == static_cast<index_t>(expected.size()));
    CHECK(loader.size() == static_cast<index_t>(expected.size() + 1) / 2);
  }
  CHECK(lines == 180);
}

TEST_CASE("without padding each sample comes once, and ranks differ by one sample at most") {
  for (index_t n : {0, 1, 5, 12, 23})
    for (index_t ranks : {1, 2, 3, 5}) {
      indices all;
      std::set<std::size_t> lengths;
      for (index_t rank = 0; rank < ranks; ++rank) {
        data_loader loader(numbers(n), {.batch_size = 3, .shuffle = true, .sampler{rank, ranks, {.pad = false}}});
        const indices mine = joined(loop_over(loader));
        lengths.insert(mine.size());
        all.insert(all.end(), mine.begin(), mine.end());
      }
      std::sort(all.begin(), all.end());
      CAPTURE(n, ranks);
      indices expected(static_cast<std::size_t>(n));
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(all == expected);
      CHECK(*lengths.rbegin() - *lengths.begin() <= 1);
    }
}

TEST_CASE("the steps of 1, 2 and 4 ranks have the same samples at equal global batch") {
  for (index_t n : {48, 50, 53})
    for (const distributed_sampler_options& sampling :
         {distributed_sampler_options{}, {.pad = false}, {.drop_last = true}})
      for (bool drop_last : {false, true}) {
        loader_options options{.batch_size = 12, .shuffle = true, .drop_last = drop_last, .seed = 7};
        const auto one = global_steps(n, 1, options, sampling);
        for (index_t ranks : {2, 4}) {
          options.batch_size = 12 / ranks;
          auto several = global_steps(n, ranks, options, sampling);
          CAPTURE(n, ranks, sampling.pad, sampling.drop_last, drop_last);
          REQUIRE((several.size() == one.size() || sampling.drop_last));
          several.resize(one.size());
          for (std::size_t k = 0; k < one.size(); ++k) {
            const bool last = one[k].size() < 12;  // may repeat samples, or lack some
            const indices& small = last && sampling.drop_last ? several[k] : one[k];
            const indices& large = last && sampling.drop_last ? one[k] : several[k];
            CHECK(std::includes(large.begin(), large.end(), small.begin(), small.end()));
            const bool exact = !last || (!sampling.pad && !sampling.drop_last);
            CHECK(large.size() - small.size() < static_cast<std::size_t>(exact ? 1 : ranks));
          }
        }
      }
}

TEST_CASE("a loop goes on from the position of another, with another number of ranks too") {
  for (const distributed_sampler_options& sampling : {distributed_sampler_options{}, {.pad = false}}) {
    loader_options options{.batch_size = 6, .shuffle = true, .seed = 2, .sampler{1, 2, sampling}};
    data_loader loader(numbers(70), options);
    loop_over(loader);  // epoch 0
    loader_position at;
    std::vector<indices> rest;
    int step = 0;
    for (const auto& batch : loader) {
      if (++step == 3) at = loader.position();
      if (step > 3) rest.push_back(samples_of(batch));
    }
    CHECK(at == loader_position{1, 36});

    data_loader again(numbers(70), options);
    again.set_position(at);
    CHECK(again.position() == at);
    CHECK(again.epoch() == 1);
    CHECK(loop_over(again) == rest);  // also what is repeated at the end
    CHECK(again.position() == loader_position{2, 0});
    CHECK(loop_over(again) == loop_over(loader));  // epoch 2, as a whole

    const auto of_two = global_steps(70, 2, options, sampling, at);
    for (index_t ranks : {1, 3, 4}) {
      options.batch_size = 12 / ranks;
      const auto other = global_steps(70, ranks, options, sampling, at);
      CAPTURE(ranks, sampling.pad);
      REQUIRE(other.size() == of_two.size());
      CHECK(std::equal(other.begin(), other.end() - 1, of_two.begin()));
      CHECK(std::includes(other.back().begin(), other.back().end(), of_two.back().begin(), of_two.back().end()));
    }
    options.batch_size = 5;  // another global batch: 10
    const auto smaller = joined(global_steps(70, 2, options, sampling, at));
    CHECK(std::set(smaller.begin(), smaller.end()) == [&] {
      const auto all = joined(of_two);
      return std::set(all.begin(), all.end());
    }());
  }
}

TEST_CASE("ranks that draw for their samples have, together, the gradients of one with the whole batch") {
  generator gen(4);
  const tensor<double, 2> points = randn<double>(gen, {21, 5});
  const auto set = tensor_dataset(points, randint(gen, 0, 3, {21}));
  nn::sequential model{nn::linear<double>(5, 7, gen), nn::dropout(0.5, gen), nn::tanh(), nn::linear<double>(7, 3, gen)};
  optim::sgd optimizer(model);
  /// The sum over the samples of an epoch's steps, each rank after the other.
  const auto gradients = [&](index_t ranks) {
    nn::sequential copy = model;  // with generators of its own
    const auto before = copy;
    optimizer.zero_grad();
    for (index_t rank = 0; rank < ranks; ++rank) {
      copy = before;
      data_loader loader(set, {.batch_size = 8 / ranks, .shuffle = true, .sampler{rank, ranks, {.pad = false}}});
      for (const auto& [x, y] : loader) {
        const samples_from guard(rank, ranks);
        variable(cross_entropy(copy(x), y) * static_cast<double>(x.extent(0))).backward();
      }
    }
    std::vector<double> all;
    model.for_each_parameter([&](const std::string&, const auto& p) {
      const tensor g = p.grad();
      all.insert(all.end(), g.span().begin(), g.span().end());
    });
    return all;
  };
  const auto one = gradients(1);
  for (const index_t ranks : {2, 4}) {
    const auto several = gradients(ranks);
    double most = 0;
    for (std::size_t i = 0; i < one.size(); ++i) most = std::max(most, std::abs(several[i] - one[i]));
    CHECK(most < 1e-13);
  }
}

TEST_CASE("the position counts what the loop was given, not what was made ahead") {
  data_loader loader(numbers(10), {.batch_size = 4, .prefetch = 5});
  CHECK(loader.position() == loader_position{0, 0});
  std::vector<index_t> reached;
  for (const auto& batch : loader) {
    CHECK(batch.size() > 0);
    reached.push_back(loader.position().samples);
    CHECK(loader.position().epoch == 0);
    CHECK(loader.epoch() == 1);
  }
  CHECK(reached == std::vector<index_t>{4, 8, 10});
  CHECK(loader.position() == loader_position{1, 0});

  for (const auto& batch : loader) {
    CHECK(samples_of(batch) == indices{0, 1, 2, 3});
    break;
  }
  CHECK(loader.position() == loader_position{1, 4});  // stays, while the next loop is another epoch
  CHECK(loader.epoch() == 2);
  data_loader copy = loader;
  CHECK(copy.position() == loader_position{1, 4});
  copy.set_position(copy.position());
  CHECK(joined(loop_over(copy)) == indices{4, 5, 6, 7, 8, 9});
  CHECK(joined(loop_over(loader)).size() == 10);
  loader.set_epoch(7);
  CHECK(loader.position() == loader_position{7, 0});

  // Of the loops that run at once, the one that began last counts.
  auto first = loader.begin();
  auto second = loader.begin();
  ++first;
  CHECK(loader.position() == loader_position{8, 4});
  ++second;
  CHECK(loader.position() == loader_position{8, 8});
  loader.set_position({3, 1});
  ++second;
  CHECK(loader.position() == loader_position{3, 1});
  CHECK(joined(loop_over(loader)).size() == 9);
}

TEST_CASE("at the last batch of an epoch its end is reached, whatever was left out") {
  const auto last_of = [](loader_options options) {
    data_loader loader(numbers(11), options);
    loader_position last;
    for (const auto& batch : loader) {
      CHECK(batch.size() > 0);
      last = loader.position();
    }
    return last;
  };
  const loader_position end{0, 11};
  CHECK(last_of({.batch_size = 2, .drop_last = true}) == end);
  CHECK(last_of({.batch_size = 2, .sampler{0, 4}}) == end);
  CHECK(last_of({.batch_size = 2, .sampler{3, 4, {.drop_last = true}}}) == end);
  CHECK(last_of({.batch_size = 1, .sampler{0, 4, {.pad = false}}}) == end);
  CHECK(last_of({.batch_size = 1, .sampler{3, 4, {.pad = false}}}) == loader_position{0, 8});  // has fewer batches
  data_loader loader(numbers(11), {.batch_size = 2});
  loader.set_position(end);
  CHECK(loop_over(loader).empty());
  CHECK(loader.position() == loader_position{1, 0});
}

TEST_CASE("samplers are made of communicators") {
  const distributed_sampler sampler(fake_world(), {.pad = false});
  CHECK(sampler.rank() == 2);
  CHECK(sampler.size() == 3);
  CHECK_FALSE(sampler.options().pad);
  CHECK_FALSE(std::is_convertible_v<fake_world, distributed_sampler>);
  CHECK_FALSE(std::is_constructible_v<distributed_sampler, std::string>);
}

TEST_CASE("ranks and positions that do not exist are errors") {
  CHECK_THROWS_WITH(distributed_sampler(0, 0), Contains("there must be at least 1 rank, not 0"));
  CHECK_THROWS_WITH(distributed_sampler(4, 4), Contains("there is no rank 4 among 4"));
  CHECK_THROWS_AS(distributed_sampler(-1, 4), value_error);
  data_loader loader(numbers(10));
  CHECK_THROWS_WITH(loader.set_position({0, 11}), Contains("behind 11 samples of epoch 0: the dataset has 10"));
  CHECK_THROWS_AS(loader.set_position({0, -1}), value_error);
  CHECK_THROWS_AS(loader.set_position({-1, 0}), value_error);
  CHECK(loader.position() == loader_position{0, 0});
}

TEST_CASE("shares of the largest dataset do not overflow") {
  const index_t n = std::numeric_limits<index_t>::max();
  const detail::epoch_share share(distributed_sampler(3, 4), 0, n);  // n is 4 m + 3
  CHECK(share.count() == n / 4 + 1);
  CHECK(share.place(share.count() - 2) == n - 4);
  CHECK(share.place(share.count() - 1) == 0);  // repeated
  CHECK(share.reached(share.count() - 1) == n - 3);
  CHECK(share.reached(share.count()) == n);
}

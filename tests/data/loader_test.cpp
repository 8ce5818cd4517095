// tests/data/loader_test.cpp: datasets, batches, shuffling by epoch, the prefetch thread and its errors.
#include "../catch.hpp"

#include <atomic>
#include <chrono>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

auto numbers(index_t n) {
  auto x = tensor<float, 2>::uninitialized({{n, 3}});
  auto y = tensor<std::int64_t, 1>::uninitialized({{n}});
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < 3; ++j) x(i, j) = static_cast<float>(10 * i + j);
    y(i) = i;
  }
  return tensor_dataset(x, y);
}

template <class Loader>
std::vector<std::int64_t> order_of(Loader& loader) {
  std::vector<std::int64_t> order;
  for (auto& [x, y] : loader)
    for (index_t i = 0; i < y.numel(); ++i) {
      REQUIRE(x(i, 2) == static_cast<float>(10 * y(i) + 2));
      order.push_back(y(i));
    }
  return order;
}

/// Squares, made one at a time; number `bad` cannot be made.
struct squares {
  index_t bad = -1;
  std::atomic<int>* made = nullptr;
  index_t size() const { return 100; }
  sample<tensor<double, 1>, std::int32_t> get(index_t i) const {
    if (i == bad) throw std::runtime_error("sample " + std::to_string(i) + " is damaged");
    if (made != nullptr) ++*made;
    return {full<double>({i == 7 && bad == -2 ? 3 : 2}, static_cast<double>(i * i)), static_cast<std::int32_t>(i)};
  }
};
static_assert(itemised_dataset<squares> && !batched_dataset<squares>);
static_assert(batched_dataset<decltype(numbers(1))>);
static_assert(!dataset<int>);

}  // namespace

TEST_CASE("every sample comes once, in order without shuffling, the last batch short") {
  for (int prefetch : {0, 1, 5}) {
    data_loader loader(numbers(10), {.batch_size = 4, .prefetch = prefetch});
    CHECK(loader.size() == 3);
    std::vector<index_t> sizes;
    for (const auto& b : loader) sizes.push_back(b.size());
    CHECK(sizes == std::vector<index_t>{4, 4, 2});
    CHECK(order_of(loader) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
}

TEST_CASE("drop_last leaves out what does not fill a batch") {
  data_loader loader(numbers(10), {.batch_size = 4, .drop_last = true});
  CHECK(loader.size() == 2);
  CHECK(order_of(loader).size() == 8);
  data_loader none(numbers(3), {.batch_size = 4, .drop_last = true});
  CHECK(order_of(none).empty());
  data_loader empty(numbers(0));
  CHECK(order_of(empty).empty());
}

TEST_CASE("each epoch has an order of its own, the same in every run") {
  data_loader a(numbers(50), {.batch_size = 7, .shuffle = true, .seed = 3});
  data_loader b(numbers(50), {.batch_size = 7, .shuffle = true, .seed = 3, .prefetch = 0});
  data_loader c(numbers(50), {.batch_size = 7, .shuffle = true, .seed = 4});
  const auto first = order_of(a), second = order_of(a);
  CHECK(std::set<std::int64_t>(first.begin(), first.end()).size() == 50);
  CHECK(first != second);
  CHECK(order_of(b) == first);
  CHECK(order_of(b) == second);
  CHECK(order_of(c) != first);
  b.set_epoch(0);
  CHECK(order_of(b) == first);
  CHECK(b.epoch() == 1);
}

TEST_CASE("single samples are stacked") {
  data_loader loader(squares{}, {.batch_size = 8});
  index_t next = 0;
  for (const auto& [x, y] : loader) {
    static_assert(std::is_same_v<decltype(x), const tensor<double, 2>>);
    static_assert(std::is_same_v<decltype(y), const tensor<std::int32_t, 1>>);
    for (index_t i = 0; i < y.numel(); ++i, ++next) {
      REQUIRE(y(i) == next);
      REQUIRE(x(i, 1) == static_cast<double>(next * next));
    }
  }
  CHECK(next == 100);
}

TEST_CASE("what a dataset throws in the thread reaches the loop") {
  for (int prefetch : {0, 2}) {
    data_loader loader(squares{45}, {.batch_size = 8, .prefetch = prefetch});
    index_t batches = 0;
    std::string text;
    try {
      for (const auto& b : loader) batches += b.size() == 8;
    } catch (const std::runtime_error& e) {
      text = e.what();
    }
    CHECK(batches == 5);
    CHECK(text == "sample 45 is damaged");
  }
  data_loader uneven(squares{-2}, {.batch_size = 10});
  CHECK_THROWS_WITH(uneven.begin(), Contains("sample 7 has shape (3,), unlike the others of its batch, (2,)"));
}

TEST_CASE("a loop may be left early, and the thread stays only so far ahead") {
  std::atomic<int> made{0};
  data_loader loader(squares{-1, &made}, {.batch_size = 10, .prefetch = 2});
  for (int round = 0; round < 50; ++round)
    for (const auto& b : loader) {
      CHECK(b.size() == 10);
      break;
    }
  CHECK(made <= 50 * 40);
}

TEST_CASE("the thread makes as many batches ahead as asked for, and holds one more") {
  std::atomic<int> made{0};
  data_loader loader(squares{-1, &made}, {.batch_size = 10, .prefetch = 3});
  for (const auto& b : loader) {
    CHECK(b.size() == 10);
    for (int tenths = 0; made < 50 && tenths < 300; ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(made == 50);
    break;
  }
}

TEST_CASE("batches go to a device, and slices share their rows") {
  const auto set = numbers(10).slice(4, 8);
  CHECK(set.size() == 4);
  data_loader loader(set, {.batch_size = 4});
  for (const auto& b : loader) {
    const auto [x, y] = b.to<numa<1>>();
    static_assert(on_device<decltype(x), numa<1>>);
    CHECK(y(0) == 4);
  }
}

TEST_CASE("bad options and tensors that do not fit are errors") {
  CHECK_THROWS_AS(data_loader(numbers(3), {.batch_size = 0}), value_error);
  CHECK_THROWS_AS(data_loader(numbers(3), {.prefetch = -1}), value_error);
  CHECK_THROWS_WITH(tensor_dataset(zeros<float>({3, 2}), zeros<int>({4})), Contains("(3, 2)") && Contains("(4,)"));
  CHECK_THROWS_AS(tensor_dataset(tensor<float, 1>(), zeros<int>({4})), shape_error);
  CHECK_THROWS_AS(detail::gather_rows(zeros<float>({3, 2}), std::vector<index_t>{3}), index_error);
}

TEST_CASE("the largest batch size gives one batch", "[data]") {
  data_loader loader(tensor_dataset(zeros<float>({10, 2}), zeros<int>({10})),
                     {.batch_size = std::numeric_limits<index_t>::max()});
  CHECK(loader.size() == 1);
  index_t n = 0;
  for (const auto& b : loader) n += b.size();
  CHECK(n == 10);
}

namespace {

/// Row i is i, without end; counts calls, and those that begin before another has ended.
struct endless {
  struct state {
    std::atomic<int> inside{0}, overlaps{0};
    int calls = 0;  // not atomic: the calls come one after the other
  };
  std::shared_ptr<state> seen = std::make_shared<state>();
  index_t samples = std::numeric_limits<index_t>::max();

  index_t size() const { return samples; }
  sample<std::int64_t, std::int32_t> get(index_t i) const {
    if (seen->inside++ != 0) ++seen->overlaps;
    ++seen->calls;
    std::this_thread::yield();
    --seen->inside;
    return {i, 1};
  }
};

}  // namespace

TEST_CASE("a loop over a huge dataset in its order starts at once") {
  for (int prefetch : {0, 2}) {
    data_loader loader(endless(), {.batch_size = 3, .prefetch = prefetch});
    CHECK(loader.size() == std::numeric_limits<index_t>::max() / 3 + 1);
    std::int64_t sum = 0, batches = 0;
    for (auto& [x, y] : loader) {
      sum += x(0) + x(1) + x(2);
      if (++batches == 2) break;
    }
    CHECK(sum == 15);
  }
}

TEST_CASE("loops over one loader at once each see every sample and call the dataset in turn") {
  const endless set{.samples = 40};
  data_loader loader(set, {.batch_size = 4, .shuffle = true});
  const auto sum_of_loop = [&] {
    std::int64_t sum = 0;
    for (auto& [x, y] : loader)
      for (index_t i = 0; i < x.numel(); ++i) sum += x(i);
    return sum;
  };
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int loop = 0; loop < 20; ++loop) wrong += sum_of_loop() != 780;
    });
  for (auto& t : threads) t.join();
  std::int64_t pairs = 0;
  for (auto& outer : loader) {
    pairs += outer.size() * sum_of_loop();
  }
  CHECK(wrong == 0);
  CHECK(pairs == 40 * 780);
  CHECK(loader.epoch() == 71);
  CHECK(set.seen->calls == 71 * 40);
  CHECK(set.seen->overlaps == 0);
  data_loader copy = loader;
  CHECK(copy.epoch() == 71);
}

TEST_CASE("a dataset of negative size is an error") {
  data_loader loader(endless{.samples = -3});
  CHECK_THROWS_AS(loader.size(), value_error);
  CHECK_THROWS_WITH(loader.begin(), Contains("data_loader: size() of the dataset is -3; it must not be negative"));
  CHECK(loader.epoch() == 0);
}

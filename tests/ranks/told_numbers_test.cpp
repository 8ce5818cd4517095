// tests/ranks/told_numbers_test.cpp: numbers that another rank tells are used only where they can be right.
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

#include <functional>

#include "../catch.hpp"
#include "communicator_checks.hpp"

using namespace sinter;
using namespace communicator_checks;

namespace {

/// Changes what a call of some name brings, as a connection without integrity may.
struct lie {
  std::string name;
  std::function<void(std::byte*, std::size_t)> change;
};
template <class N>
lie put(const std::string& name, index_t place, N value) {
  return {name, [=](std::byte* data, std::size_t bytes) {
            if (bytes < (static_cast<std::size_t>(place) + 1) * sizeof(N)) throw std::runtime_error("no such place");
            std::memcpy(data + static_cast<std::size_t>(place) * sizeof(N), &value, sizeof(N));
          }};
}

/// A thread_communicator of which one kind of call brings something else.
class lied_to {
 public:
  template <class D>
  static constexpr bool reaches = is_cpu_v<D>;

  lied_to(thread_communicator ranks, lie what) : ranks_(std::move(ranks)), what_(std::move(what)) {}

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  std::string name() const { return ranks_.name(); }
  template <element T>
  work<tensor<T, 1>> all_reduce(tensor<T, 1> x, rank_reduction by = reduction::sum, std::string_view name = {}) {
    return changed(ranks_.all_reduce(x, by, name).get(), name);
  }
  template <element T>
  work<tensor<T, 1>> broadcast(tensor<T, 1> x, int root, std::string_view name = {}) {
    return changed(ranks_.broadcast(x, root, name).get(), name);
  }
  template <element T>
  work<tensor<T, 1>> all_gather(tensor<T, 1> x, std::string_view name = {}) {
    return changed(ranks_.all_gather(x, name).get(), name);
  }
  template <element T>
  work<tensor<T, 1>> reduce_scatter(tensor<T, 1> x, std::string_view name = {}) {
    return changed(ranks_.reduce_scatter(x, name).get(), name);
  }
  template <element T>
  work<void> send(tensor<T, 1> x, int to, int tag = 0) {
    return ranks_.send(x, to, tag);
  }
  template <element T, device D = cpu>
  work<tensor<T, 1, D>> receive(index_t n, int from, int tag = 0) {
    return changed(ranks_.template receive<T, D>(n, from, tag).get(), "receive");
  }
  work<void> barrier(std::string_view name = {}) { return ranks_.barrier(name); }
  lied_to split(int color, int key) { return {ranks_.split(color, key), what_}; }
  void abort(std::string reason) { ranks_.abort(std::move(reason)); }

 private:
  struct over final : detail::work_state {
    bool done() const override { return true; }
    void wait(std::optional<double>) override {}
  };
  template <class T>
  work<tensor<T, 1>> changed(tensor<T, 1> x, std::string_view name) const {
    if (name == what_.name)
      what_.change(reinterpret_cast<std::byte*>(x.data()), static_cast<std::size_t>(x.numel()) * sizeof(T));
    return {std::make_shared<over>(), x};
  }
  thread_communicator ranks_;
  lie what_;
};
static_assert(communicator_on<lied_to, cpu>);

struct two_layers : nn::module<two_layers> {
  explicit two_layers(generator gen) : first(4, 6, gen), second(6, 3, gen) {}
  nn::linear<float> first, second;
  SINTER_MEMBERS(first, second);
};

variable<float, 0> loss_of(const two_layers& m) { return mean(square(m.second(tanh(m.first(ones<float>({2, 4})))))); }

/// Two ranks train for some steps; rank 1 is lied to.
template <class F>
std::string told_in(const lie& what, const F& f) {
  std::string text;
  try {
    run_ranks(2, {}, [&](thread_communicator world) {
      lied_to ranks(world, world.rank() == 1 ? what : lie{});
      try {
        f(ranks);
      } catch (const communication_error& e) {
        if (world.rank() == 1) text = e.what();
        throw;
      } catch (const value_error& e) {
        if (world.rank() == 1) text = e.what();
        throw;
      }
    });
  } catch (const error&) {
  }
  return text;
}
void train(lied_to& world) {
  two_layers model{generator(1)};
  nn::distributed ranks(model, world, {.bucket_bytes = 64, .first_bucket_bytes = 32});
  optim::sgd optimizer(model, {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    ranks.backward(loss_of(model), 2);
    optimizer.step();
  }
}

}  // namespace

TEST_CASE("told numbers: a communicator that changes nothing trains", "[parallel][communicator]") {
  CHECK(told_in({}, train).empty());
}

TEST_CASE("told numbers: an order of gradients that is none is an error", "[parallel][communicator]") {
  const std::string name = "order of gradients";
  const auto text = [](std::int32_t value, index_t place) {
    return "distributed, rank 1 of 2: rank 0 tells an order of 4 gradients with " + std::to_string(value) +
           " in place " + std::to_string(place) + ", which cannot be";
  };
  for (const std::int32_t value : {-1, 4, 1 << 20, std::numeric_limits<std::int32_t>::min()})
    for (const index_t place : {1, 4})
      CHECK_THAT(told_in(put(name, place, value), train), Catch::Contains(text(value, place)));
  CHECK_THAT(told_in(put<std::int32_t>(name, 0, 2), train), Catch::Contains(text(2, 0)));
  lie twice{name, [](std::byte* data, std::size_t) { std::memcpy(data + 8, data + 4, 4); }};
  CHECK_THAT(told_in(twice, train), Catch::Contains("in place 2, which cannot be"));
}

TEST_CASE("told numbers: samples and ranks of a step that cannot be are an error", "[parallel][communicator]") {
  const std::string name = "samples of the step";
  for (const auto& [place, value] : std::vector<std::pair<index_t, std::int64_t>>{
           {0, 1}, {0, -5}, {0, 0}, {1, -1}, {1, 2}, {1, 3}, {2, 3}, {2, -1}, {3, 3}, {3, std::int64_t{1} << 62}}) {
    INFO(place << ": " << value);
    CHECK_THAT(told_in(put(name, place, value), train),
               Catch::Contains("distributed, rank 1 of 2: the ranks together tell"));
  }
}

TEST_CASE("told numbers: lengths of lists of parameters are not believed", "[parallel][communicator]") {
  // One hash is changed, so the ranks exchange their lists, of which the length of rank 0 is then changed.
  for (const std::int64_t length : {std::int64_t{-1}, std::int64_t{1} << 40}) {
    const lie both{"models", [=](std::byte* data, std::size_t bytes) {
                     if (bytes != 16) return;
                     const std::int64_t words[2] = {length, 0};
                     std::memcpy(data, words, 8);
                   }};
    std::string text;
    run_ranks(2, {}, [&](thread_communicator world) {
      lied_to ranks(world, both);  // both see other hashes, and then lengths
      two_layers model{generator(1)};
      try {
        nn::distributed wrapped(model, ranks);
      } catch (const communication_error& e) {
        if (world.rank() == 1) text = e.what();
      }
    });
    CHECK_THAT(text,
               Catch::Contains("rank 0 tells of a list of " + std::to_string(length) + " bytes, which cannot be"));
  }
}

TEST_CASE("told numbers: counts of a sync_batch_norm are whole and in their range", "[parallel][communicator]") {
  const auto norm = [](lied_to& world) {
    nn::sync_batch_norm bn(world, nn::batch_norm1d<float>(3));
    variable<float, 2> x = ones<float>({4, 3});
    const variable<float, 2> y = bn(x);
  };
  CHECK(told_in({}, norm).empty());
  const std::string name = "moments of a sync_batch_norm";
  for (const float value : {-1.f, 0.5f, std::nanf(""), 1e30f}) {
    CHECK_THAT(told_in(put(name, 6, value), norm), Catch::Contains("sync_batch_norm, rank 1 of 2: rank 0 tells of "));
    CHECK_THAT(told_in(put(name, 7, value), norm), Catch::Contains("sync_batch_norm, rank 1 of 2: rank 0 tells of "));
  }
}

TEST_CASE("told numbers: rows of a gradient are rows of its table", "[parallel][communicator]") {
  const auto look_up = [](lied_to& world) {
    generator gen(1);
    const nn::embedding table(7, 3, gen, {.sparse = true});
    nn::distributed ranks(table, world);
    const variable loss = mean(table(tensor<std::int64_t, 1>{4, 2, 4}));
    ranks.backward(loss, 3);
  };
  CHECK(told_in({}, look_up).empty());
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{8}, std::int64_t{1} << 40})
    CHECK_THAT(told_in(put("numbers of rows", 0, count), look_up),
               Catch::Contains("rank 0 tells of " + std::to_string(count) + " rows of a gradient, which cannot be"));
  CHECK_THAT(told_in(put("numbers of rows", 1, std::int64_t{3}), look_up), Catch::Contains("rank 1 tells of 3 rows"));
  for (const std::int64_t row : {std::int64_t{-2}, std::int64_t{7}, std::int64_t{1} << 40})
    CHECK_THAT(told_in(put("rows of a table", 1, row), look_up),
               Catch::Contains("rank 0 tells of row " + std::to_string(row) + " of a table of 7, which cannot be"));
}

TEST_CASE("told numbers: the state of an optimizer is read within its bounds", "[parallel][communicator]") {
  const auto gather = [](thread_communicator& world, const lie& what) {
    lied_to ranks(world, what);
    two_layers model{generator(1)};
    nn::distributed wrapped(model, ranks);
    optim::sharded<optim::adam> optimizer(wrapped);
    wrapped.backward(loss_of(model), 2);
    optimizer.step();
    optimizer.gather_state();
  };
  const auto text_of = [&](const lie& what) {
    std::string text;
    try {
      run_ranks(2, {}, [&](thread_communicator world) {
        try {
          gather(world, world.rank() == 0 ? what : lie{});
        } catch (const error& e) {
          if (world.rank() == 0) text = e.what();
          throw;
        }
      });
    } catch (const error&) {
    }
    return text;
  };
  CHECK(text_of({}).empty());
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{1} << 40})
    CHECK_THAT(text_of(put("sizes of optimizer states", 1, size)),
               Catch::Contains("sharded, rank 0 of 2: rank 1 tells of a state of " + std::to_string(size) + " bytes"));
  // The first value: its rank, element type and extent.
  for (const index_t place : {0, 1, 2})
    for (const std::int64_t value : {std::int64_t{-7}, std::int64_t{1} << 62, std::int64_t{99}})
      CHECK_THAT(text_of(put("receive", place, value)), Catch::Contains("as that of rank 1 is not the one of its"));
}

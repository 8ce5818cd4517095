// tests/ranks/sequences_test.cpp: a network of embeddings, a transformer's layer and an LSTM over devices and over
// ranks trains as it does on one device, dropout included.
#include <sinter/parallel.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sequences.hpp>
#include "../catch.hpp"
#include "../same_bits.hpp"

using namespace sinter;

namespace {

using ids = tensor<std::int64_t, 2>;
constexpr index_t samples = 8, words = 5, vocabulary = 11;

struct text {
  ids now = zeros<std::int64_t>({samples, words}), next = zeros<std::int64_t>({samples, words});
  text() {
    for (index_t i = 0; i < now.numel(); ++i) {
      now.data()[i] = (i * 7 + i / 3) % vocabulary;
      next.data()[i] = (i * 5 + 2) % vocabulary;
    }
  }
};

template <device D = cpu>
auto lower(generator& gen) {
  return nn::sequential{
      nn::embedding<float, D>(vocabulary, 8, gen),
      nn::transformer_encoder_layer<float, D>(
          8, 2, gen, {.feedforward_features = 16, .dropout = 0.2, .batch_first = true, .causal = true})};
}
template <device D = cpu>
auto upper(generator& gen) {
  return nn::sequential{nn::lstm<float, D>(8, 6, gen, {.layers = 2, .batch_first = true, .dropout = 0.3}),
                        nn::linear<float, D>(6, vocabulary, gen)};
}
auto network(generator& gen) {
  auto first = lower(gen);
  auto last = upper(gen);
  return nn::sequential{first, last};
}

/// The mean loss over words of scores (N,T,vocabulary).
template <class Scores, class Next>
auto loss_of(const Scores& scores, const Next& next) {
  const auto value = eval(scores);
  return eval(cross_entropy(value.reshape({next.numel(), vocabulary}), next.contiguous().flatten()));
}
constexpr auto loss = [](const auto& scores, const auto& next) { return loss_of(scores, next); };

/// The losses of four steps, each on all samples. step(zero) makes one, with its loss, and calls zero() before
/// backward.
template <class Model, class Step>
std::vector<double> train(const Model& model, const Step& step) {
  optim::adam optimizer(model, {.lr = 0.02});
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) {
    optimizer.zero_grad();
    losses.push_back(step());
    optimizer.step();
  }
  return losses;
}
template <class Model>
std::vector<double> train_at_once(const Model& model, const ids& now, const ids& next) {
  return train(model, [&] {
    variable l = loss_of(model(now), next);
    l.backward();
    return static_cast<double>(l.item());
  });
}
std::vector<double> on_one_device() {
  generator gen(3);
  const auto model = network(gen);
  const text t;
  return train_at_once(model, t.now, t.next);
}
void check_same(const std::vector<double>& losses) {
  const auto expected = on_one_device();
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    INFO("step " << i << ": " << losses[i] << ", on one device " << expected[i]);
    CHECK(std::abs(losses[i] - expected[i]) < 2e-5);
  }
  CHECK(expected[3] < expected[0]);
}

}  // namespace

TEST_CASE("sequence networks placed over two devices train as on one", "[sequences]") {
  generator gen(3);
  auto first = lower(gen);
  auto last = upper(gen);
  const auto split = nn::placed<nn::cut<0, numa<0>>, nn::cut<1, cpu>>(nn::sequential{first, last});
  const text t;
  check_same(train(split, [&] {
    variable l = loss_of(split(t.now.to<numa<0>>()), t.next);
    l.backward();
    return static_cast<double>(l.item());
  }));
}

TEST_CASE("sequence networks in data_parallel train as on one device", "[sequences]") {
  generator gen(3);
  const auto replicas = nn::data_parallel<numa<0>, numa<1>>(network(gen));
  const text t;
  check_same(train(replicas, [&] { return replicas.backward(t.now, t.next, loss); }));
}

TEST_CASE("sequence networks in a pipeline train as on one device", "[sequences]") {
  generator gen(3);
  auto first = lower(gen);
  auto last = upper(gen);
  const nn::pipeline pipe{first.to<numa<0>>(), last.to<numa<1>>()};
  const text t;
  check_same(train(
      pipe, [&] { return pipe.step(t.now.to<numa<0>>(), t.next.to<numa<1>>(), loss, {.microbatches = 4}).loss; }));
}

TEST_CASE("sequence networks over ranks train as on one device", "[sequences]") {
  std::vector<double> of_ranks[2];
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    generator gen(3);
    const auto model = network(gen);
    nn::distributed ranks(model, world);
    const text t;
    const ids now = t.now.slice(0, world.rank(), samples, 2), next = t.next.slice(0, world.rank(), samples, 2);
    of_ranks[world.rank()] = train(model, [&] {
      ranks.begin(now.extent(0));
      const samples_from numbers(world.rank(), world.size());  // of the whole batch
      variable l = loss_of(model(now), next);
      ranks.backward(l, now.extent(0));
      return static_cast<double>(l.item());
    });
  }));
  std::vector<double> losses;
  for (std::size_t i = 0; i < of_ranks[0].size(); ++i) losses.push_back((of_ranks[0][i] + of_ranks[1].at(i)) / 2);
  check_same(losses);
}

namespace {

/// A network whose table of words is row-sparse, and after three steps its parameters.
struct words_of_rank {
  generator gen{5};
  nn::embedding<> table;
  nn::linear<> head;
  optim::adagrad optimizer;
  explicit words_of_rank(bool sparse)
      : table(vocabulary, 8, gen, {.sparse = sparse}), head(8, vocabulary, gen), optimizer(table, {.lr = 0.1}) {
    optimizer.add(head);
  }
  auto model() const { return nn::sequential{table, head}; }
  tensor<float, 2> value() const { return table.weight.value(); }
};
tensor<float, 2> table_after_steps(bool sparse) {
  words_of_rank w(sparse);
  const text t;
  for (int i = 0; i < 3; ++i) {
    w.optimizer.zero_grad();
    const variable l = loss_of(w.model()(t.now), t.next);
    l.backward();
    optim::clip_grad_norm(w.table, 0.1);
    w.optimizer.step();
  }
  return w.value();
}

}  // namespace

TEST_CASE("gradients that are held by rows are summed over ranks", "[sequences]") {
  const auto expected = table_after_steps(false);
  CHECK(same_bits(table_after_steps(true), expected));
  // Of three ranks the last has no samples, and in the second step the first has none either.
  tensor<float, 2> of_ranks[3];
  index_t most_rows[3] = {};
  CHECK_NOTHROW(run_ranks(3, {}, [&](thread_communicator world) {
    words_of_rank w(true);
    const auto model = w.model();
    nn::distributed ranks(model, world);
    const text t;
    for (int i = 0; i < 3; ++i) {
      w.optimizer.zero_grad();
      const index_t first = world.rank() == 0 ? 0 : i == 1 ? 0 : samples / 2;
      const index_t last = world.rank() == 2 ? first : world.rank() == 1 ? samples : i == 1 ? 0 : samples / 2;
      const index_t own = last - first;
      ranks.begin(own);
      // One without samples looks up a word of its own, which is left out.
      const ids now = own > 0 ? t.now.slice(0, first, last) : ids(ones<std::int64_t>({1, words}));
      const variable l = loss_of(model(now), t.next.slice(0, first, first + std::max<index_t>(own, 1)));
      ranks.backward(l, own);
      index_t& most = most_rows[world.rank()];
      most = std::max(most, row_grad(w.table.weight).rows.numel());
      optim::clip_grad_norm(w.table, 0.1);
      w.optimizer.step();
    }
    of_ranks[world.rank()] = w.value();
  }));
  for (const index_t most : most_rows) CHECK(most == 3);  // different words in the text
  CHECK(same_bits(of_ranks[1], of_ranks[0]));
  CHECK(same_bits(of_ranks[2], of_ranks[0]));
  CHECK(max(abs(of_ranks[0] - expected)).item() < 1e-5f);
}

TEST_CASE("gradients that are held by rows gather over passes, and over ranks that made them dense", "[sequences]") {
  const auto expected = [] {
    words_of_rank w(false);
    const text t;
    for (int i = 0; i < 2; ++i) loss_of(w.model()(t.now), t.next).backward();
    return w.table.weight.grad();
  }();
  float errors[2] = {1, 1};
  CHECK_NOTHROW(run_ranks(2, {}, [&](thread_communicator world) {
    words_of_rank w(true);
    const auto model = w.model();
    nn::distributed ranks(model, world);
    const text t;
    const ids now = t.now.slice(0, world.rank(), samples, 2), next = t.next.slice(0, world.rank(), samples, 2);
    variable before = loss_of(model(now), next);
    before.backward();  // counts by the share of this rank's samples
    if (world.rank() == 1) w.table.weight.grad();
    ranks.begin(now.extent(0));
    const variable l = loss_of(model(now), next);
    ranks.backward(l, now.extent(0));
    errors[world.rank()] = max(abs(w.table.weight.grad() - expected)).item();
  }));
  for (const float error : errors) CHECK(error < 1e-6f);
}

TEST_CASE("data_parallel keeps gradients by rows", "[sequences]") {
  words_of_rank one(false), w(true);
  const text t;
  const auto loss_here = loss_of(one.model()(t.now), t.next);
  loss_here.backward();
  const auto replicas = nn::data_parallel<numa<0>, numa<1>>(w.model());
  replicas.backward(t.now, t.next, loss);
  CHECK(row_grad(w.table.weight).rows.numel() == 3);  // different words in the text
  replicas.backward(t.now, t.next, loss);
  CHECK(max(abs(w.table.weight.grad() - 2 * one.table.weight.grad())).item() < 1e-6f);
}

// tests/metrics/metrics_test.cpp: metrics against scikit-learn, batch by batch and over ranks.
#include "../catch.hpp"

#include <fstream>
#include <map>
#include <sstream>

#include <sinter/metrics.hpp>
#include <sinter/ranks/thread/communicator.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;
using metrics::average;

namespace {

const std::map<std::string, std::vector<double>>& reference() {
  static const auto all = [] {
    std::map<std::string, std::vector<double>> lines;
    std::ifstream file(SINTER_REPOSITORY "/tests/metrics/reference/scikit_learn.txt");
    for (std::string line, name; std::getline(file, line);) {
      std::istringstream in(line);
      in >> name;
      for (double x = 0; in >> x;) lines[name].push_back(x);
    }
    return lines;
  }();
  return all;
}
tensor<double, 2> table(const std::string& name, index_t columns) {
  return from_data<double>(reference().at(name), {60, columns});
}
double number(const std::string& name) { return reference().at(name).at(0); }
tensor<std::int64_t, 1> labels() { return eval(cast<std::int64_t>(from_data<double>(reference().at("labels"), {60}))); }
/// Gives the metric the samples of x and y in batches of 7.
template <class M, class X, class Y>
M& feed(M&& metric, const X& x, const Y& y) {
  for (index_t i = 0; i < y.extent(0); i += 7) {
    const index_t end = std::min(i + 7, y.extent(0));
    metric.add(x.slice(0, i, end), y.slice(0, i, end));
  }
  return static_cast<M&>(metric);  // in C++23 a name that is returned is no lvalue
}
void check_close(double value, double expected) { CHECK(value == Approx(expected).epsilon(1e-13)); }

/// What a rank gets that two other ranks feed with parts of the samples.
template <class M, class X, class Y>
double over_ranks(const M& metric, const X& x, const Y& y) {
  double values[3] = {};
  run_ranks(3, [&](thread_communicator ranks) {
    M mine = metric;
    const index_t from = ranks.rank() == 1 ? 17 : 0, end = ranks.rank() == 1 ? y.extent(0) : 17;
    if (ranks.rank() != 2) feed(mine, x.slice(0, from, end), y.slice(0, from, end));  // rank 2 has no samples
    mine.all_reduce(ranks);
    values[ranks.rank()] = mine.value();
  });
  CHECK(values[0] == values[1]);
  CHECK(values[0] == values[2]);
  return values[0];
}

}  // namespace

TEST_CASE("accuracy is scikit-learn's, of scores, of classes, and of the k largest scores") {
  const auto scores = table("scores", 4);
  const auto expected = labels();
  metrics::accuracy accuracy;
  check_close(feed(accuracy, scores, expected).value(), number("accuracy"));
  CHECK(accuracy.count() == 60);
  accuracy.reset();
  check_close(feed(accuracy, argmax(scores, 1), expected).value(), number("accuracy"));
  check_close(feed(metrics::accuracy({.top_k = 2}), scores, expected).value(), number("top2"));
  check_close(feed(metrics::accuracy({.top_k = 3}), scores, expected).value(), number("top3"));
  CHECK(feed(metrics::accuracy({.top_k = 9}), scores, expected).value() == 1);
  check_close(over_ranks(metrics::accuracy(), scores, expected), number("accuracy"));

  accuracy.reset();
  const variable score = tensor<float, 1>{-1, 2, 0.5f};
  accuracy.add(score > 0, tensor<bool, 1>{false, true, false});
  CHECK(accuracy.value() == 2 / 3.0);
  accuracy.add(cast<half>(scores * variable(tensor<double, 0>(ones<double>()))), cast<std::uint8_t>(expected));
  CHECK(accuracy.count() == 63);
}

TEST_CASE("equal scores, NaN and ignored labels count as for argmax and cross_entropy") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const tensor<float, 2> scores = {{1, 1, 0}, {nan, 5, nan}, {0, 1, 0}};
  const auto of = [&](std::vector<std::int64_t> expected, const metrics::accuracy_options& options = {}) {
    metrics::accuracy accuracy(options);
    accuracy.add(scores, from_data<std::int64_t>(expected, {3}));
    return accuracy.value();
  };
  CHECK(of({0, 0, 1}) == 1);
  CHECK(of({1, 1, 2}) == 0);
  CHECK(of({1, 2, 0}, {.top_k = 2}) == 1);
  CHECK(of({2, 1, 2}, {.top_k = 2}) == 0);
  CHECK(of({0, -100, 2}) == 0.5);
  CHECK(of({0, 1, 1}, {.ignore_index = 1}) == 1);
  metrics::confusion_matrix matrix(3);
  matrix.add(scores, tensor<std::int64_t, 1>{0, -100, 1});
  CHECK(matrix.accuracy() == 1);
  CHECK(matrix.count() == 2);
}

TEST_CASE("confusion_matrix, precision, recall and F1 are scikit-learn's") {
  const auto scores = table("scores", 4);
  const auto expected = labels();
  metrics::confusion_matrix matrix(4);
  feed(matrix, scores, expected);
  const auto counts = eval(cast<double>(matrix.value()));
  CHECK(all(counts == from_data<double>(reference().at("confusion"), {4, 4})).item());
  check_close(matrix.accuracy(), number("accuracy"));
  const std::pair<const char*, average> ways[] = {
      {"micro", average::micro}, {"macro", average::macro}, {"weighted", average::weighted}};
  for (const auto& [name, way] : ways) {
    check_close(matrix.precision(way), number(std::string("precision_") + name));
    check_close(matrix.recall(way), number(std::string("recall_") + name));
    check_close(matrix.f1(way), number(std::string("f1_") + name));
  }
  const auto check_each = [](const tensor<double, 1>& values, const char* name) {
    for (index_t c = 0; c < 4; ++c) check_close(values(c), reference().at(name).at(static_cast<std::size_t>(c)));
  };
  check_each(matrix.precision_per_class(), "precision_each");
  check_each(matrix.recall_per_class(), "recall_each");
  check_each(matrix.f1_per_class(), "f1_each");

  metrics::confusion_matrix two(2);
  feed(two, eval(argmax(scores, 1) == 1), eval(expected == 1));
  check_close(two.precision(average::binary), number("precision_binary"));
  check_close(two.recall(average::binary), number("recall_binary"));
  check_close(two.f1(average::binary), number("f1_binary"));
  two.reset();
  CHECK(two.count() == 0);
  CHECK_THROWS_AS(two.f1(), value_error);

  run_ranks(2, [&](thread_communicator ranks) {
    metrics::confusion_matrix mine(4);
    mine.add(scores.slice(0, ranks.rank() * 10, ranks.rank() == 0 ? 10 : 60),
             expected.slice(0, ranks.rank() * 10, ranks.rank() == 0 ? 10 : 60));
    mine.all_reduce(ranks);
    if (!all(mine.value() == matrix.value()).item()) throw error("another matrix");
  });
}

TEST_CASE("roc_auc is scikit-learn's, for one score and for several classes") {
  const auto scores = table("scores", 4);
  const auto expected = labels();
  const auto second = eval(scores.select(1, 1) + 0);
  const auto is_one = eval(expected == 1);
  metrics::roc_auc area;
  check_close(feed(area, second, is_one).value(), number("auc_binary"));
  CHECK(area.count() == 60);
  area.reset();
  check_close(feed(area, scores.slice(1, 0, 3), expected).value(), number("auc_classes"));
  area.reset();
  check_close(feed(area, table("probabilities", 3), expected).value(), number("auc_probabilities"));
  check_close(over_ranks(metrics::roc_auc(), second, is_one), number("auc_binary"));
  check_close(over_ranks(metrics::roc_auc(), table("probabilities", 3), expected), number("auc_probabilities"));
  area.reset();
  const float infinity = std::numeric_limits<float>::infinity();
  area.add(tensor<float, 1>{-infinity, infinity, infinity}, tensor<int, 1>{0, 1, 0});
  CHECK(area.value() == 0.75);
}

TEST_CASE("r2_score is scikit-learn's, over several outputs and far from 0") {
  const auto targets = from_data<double>(reference().at("targets"), {20, 3});
  const auto guesses = from_data<double>(reference().at("guesses"), {20, 3});
  metrics::r2_score r2;
  CHECK(feed(r2, guesses, targets).value() == Approx(number("r2")).epsilon(1e-9));
  for (index_t i = 0; i < 3; ++i)
    CHECK(r2.value_per_output()(i) == Approx(reference().at("r2_each").at(static_cast<std::size_t>(i))).epsilon(1e-9));
  r2.reset();
  CHECK(feed(r2, guesses.select(1, 0), targets.select(1, 0)).value() == Approx(number("r2_first")).epsilon(1e-9));
  CHECK(over_ranks(metrics::r2_score(), guesses, targets) == Approx(number("r2")).epsilon(1e-9));
  r2.reset();
  r2.add(ones<float>({3}), ones<float>({3}));
  CHECK(r2.value() == 1);
}

TEST_CASE("perplexity is exp of the mean cross-entropy") {
  const auto scores = table("scores", 4);
  const auto expected = labels();
  metrics::perplexity p;
  check_close(feed(p, scores, expected).value(), number("perplexity"));
  p.reset();
  p.add_loss(eval(cross_entropy(scores.slice(0, 0, 20), expected.slice(0, 0, 20))).item(), 20);
  p.add_loss(eval(cross_entropy(scores.slice(0, 20, 60), expected.slice(0, 20, 60))).item(), 40);
  CHECK(p.value() == Approx(number("perplexity")).epsilon(1e-12));
  check_close(over_ranks(metrics::perplexity(), scores, expected), number("perplexity"));
  metrics::perplexity padded({.ignore_index = 0});
  padded.add(tensor<float, 2>{{1e30f, 0}, {500, 500}}, tensor<std::int64_t, 1>{0, 1});
  check_close(padded.value(), 2);
}

TEST_CASE("running_mean weighs numbers, and keeps what is not finite") {
  metrics::running_mean mean;
  mean.add(1, 3);
  mean.add(5);
  CHECK(mean.value() == 2);
  CHECK(mean.weight() == 4);
  mean.add(std::numeric_limits<double>::quiet_NaN(), 0);
  CHECK(mean.value() == 2);
  mean.add(std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isnan(mean.value()));
  CHECK_THROWS_WITH(mean.add(1, -1), "running_mean: the weight -1 must be finite and not negative");
  run_ranks(2, [](thread_communicator ranks) {
    metrics::running_mean mine;
    mine.add(ranks.rank() == 0 ? 1 : 4, ranks.rank() == 0 ? 2 : 1);
    mine.all_reduce(ranks);
    if (mine.value() != 2) throw error("another mean");
  });
}

TEST_CASE("metrics refuse what does not fit and say why") {
  const tensor<float, 2> scores = {{1, 2}, {3, 4}};
  const tensor<std::int64_t, 1> fine = {0, 1};
  metrics::accuracy accuracy;
  CHECK_THROWS_WITH(accuracy.value(), "accuracy: there are no samples; call add() before value()");
  CHECK_THROWS_WITH(accuracy.add(scores, tensor<int, 1>{0, 2}), "accuracy: label 2 of sample 1 is outside [0, 2)");
  CHECK_THROWS_AS(accuracy.add(scores, tensor<int, 1>{-1, 0}), index_error);
  CHECK_THROWS_WITH(accuracy.add(scores, tensor<int, 1>{0}),
                    "accuracy: 1 labels for 2 samples; there must be one for each");
  CHECK_THROWS_AS(accuracy.add(tensor<float, 2>(), fine), shape_error);
  CHECK(accuracy.count() == 0);
  CHECK_THROWS_AS(metrics::accuracy({.top_k = 0}), value_error);
  metrics::confusion_matrix matrix(3);
  CHECK_THROWS_WITH(matrix.add(scores, fine), "confusion_matrix: scores of 2 classes for a matrix of 3");
  CHECK_THROWS_AS(matrix.add(tensor<int, 1>{0, 3}, fine), index_error);
  CHECK_THROWS_WITH(matrix.f1(average::binary), Contains("average::binary is for 2 classes, not 3"));
  CHECK_THROWS_AS(matrix.accuracy(), value_error);
  CHECK_THROWS_WITH(matrix.value(), "confusion_matrix: there are no samples; call add() before value()");
  CHECK_THROWS_AS(matrix.precision(), value_error);
  CHECK_THROWS_AS(matrix.recall_per_class(), value_error);
  CHECK_THROWS_AS(metrics::confusion_matrix(2).f1(average::binary), value_error);
  CHECK_THROWS_WITH(metrics::confusion_matrix(1 << 24), Contains("there must be 1 to 32768"));
  CHECK_THROWS_AS(matrix.add(tensor<int, 1>{0, -100}, fine), index_error);
  matrix.add(tensor<int, 1>{0, -100, 7}, tensor<int, 1>{2, -100, -100});
  CHECK(matrix.count() == 1);
  CHECK(matrix.value()(2, 0) == 1);
  CHECK_THROWS_WITH(accuracy.add(fine, tensor<int, 1>{0, -1}), "accuracy: label -1 of sample 1 is negative");
  CHECK_THROWS_AS(metrics::confusion_matrix(0), value_error);
  metrics::roc_auc area;
  CHECK_THROWS_AS(area.value(), value_error);
  area.add(tensor<float, 1>{1, 2}, tensor<int, 1>{1, 1});
  CHECK_THROWS_WITH(area.value(), "roc_auc: every sample has the label 1; the area is not defined");
  CHECK_THROWS_WITH(area.add(scores, fine), "roc_auc: scores with 2 columns, after others with 1");
  CHECK_THROWS_AS(area.add(tensor<float, 1>{1}, tensor<int, 1>{2}), index_error);
  CHECK_THROWS_AS(area.add(tensor<float, 1>{std::numeric_limits<float>::quiet_NaN()}, tensor<int, 1>{1}), value_error);
  CHECK(area.count() == 2);
  metrics::r2_score r2;
  CHECK_THROWS_AS(r2.add(scores, tensor<float, 2>{{1, 2}}), shape_error);
  CHECK_THROWS_AS(r2.value(), value_error);
  CHECK_THROWS_AS(metrics::perplexity().value(), value_error);
  CHECK_THROWS_WITH(metrics::perplexity().add_loss(1, -2), Contains("perplexity: the loss of -2 samples"));
}

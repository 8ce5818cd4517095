// tests/sequences/ctc_loss_test.cpp: ctc_loss against the sum over all paths, PyTorch and differences, and what it
// refuses.
#include <sinter/sequences.hpp>
#include "../grad/differences.hpp"
#include "../same_bits.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace sinter;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of all ways to draw a class in each step, those that spell the labels.
double by_all_paths(const tensor<double, 2>& log_p, const std::vector<index_t>& labels, index_t blank) {
  const index_t steps = log_p.extent(0), classes = log_p.extent(1);
  std::vector<index_t> path(static_cast<std::size_t>(steps));
  double total = 0;
  while (true) {
    std::vector<index_t> spelled;
    double p = 0;
    for (index_t t = 0; t < steps; ++t) {
      const index_t c = path[static_cast<std::size_t>(t)];
      p += log_p(t, c);
      if (c != blank && (t == 0 || path[static_cast<std::size_t>(t - 1)] != c)) spelled.push_back(c);
    }
    if (spelled == labels) total += std::exp(p);
    std::size_t at = 0;
    while (at < path.size() && ++path[at] == classes) path[at++] = 0;
    if (at == path.size()) return -std::log(total);
  }
}

const std::vector<index_t> steps = {7, 5, 4, 4, 6}, lengths = {3, 0, 1, 4, 2};
const tensor<int, 2> labels = {{1, 1, 2, 0}, {0, 0, 0, 0}, {3, 0, 0, 0}, {2, 2, 2, 1}, {3, 1, 0, 0}};
const tensor<int, 1> labels_in_a_row = {1, 1, 2, 3, 2, 2, 2, 1, 3, 1};

/// That of reference/ctc_loss.py.
template <class T = double>
tensor<T, 3> scores() {
  auto x = empty<T>({7, 5, 4});
  for (index_t i = 0; i < 140; ++i) x.data()[i] = static_cast<T>(2 * std::sin(0.37 * static_cast<double>(i * i)));
  return x;
}

void check_near(double got, double expected) {
  if (std::isnan(expected)) CHECK(std::isnan(got));
  else CHECK(got == Approx(expected).epsilon(1e-12).margin(1e-12));
}

}  // namespace

TEST_CASE("ctc_loss is the sum over all paths that spell the labels") {
  generator gen(3);
  const tensor log_p = log_softmax(2 * randn<double>(gen, {5, 3}), 1);
  const std::vector<std::vector<index_t>> all = {{}, {0}, {1}, {0, 1}, {1, 0}, {1, 1}, {0, 0, 1}, {0, 1, 0}, {1, 1, 1}};
  for (const auto& word : all) {
    const auto n = static_cast<index_t>(word.size());
    const auto target = from_data<std::int64_t>(std::vector<std::int64_t>(word.begin(), word.end()), {n});
    for (const index_t t : {5, 4, 3, 1})
      CHECK(ctc_loss(log_p, target, {t}, {n}, {.blank = 2}, reduction::none).item() ==
            Approx(by_all_paths(log_p.slice(0, 0, t).contiguous(), word, 2)));
  }
}

TEST_CASE("ctc_loss has PyTorch's losses and gradients") {
  std::ifstream file(SINTER_REPOSITORY "/tests/sequences/reference/ctc_loss.csv");
  std::string text;
  int cases = 0;
  for (; std::getline(file, text); ++cases) {
    std::istringstream line(text);
    std::vector<double> v;
    for (std::string number; std::getline(line, number, ',');) v.push_back(std::stod(number));
    REQUIRE(v.size() == 149);
    const ctc_options o{.blank = static_cast<index_t>(v[0]), .zero_infinity = v[1] == 1};
    INFO("blank " << v[0] << ", zero_infinity " << v[1]);
    const tensor<int, 2> words = o.blank == 0 ? labels : eval((labels + 3) & 3);
    const variable log_p = eval(log_softmax(scores(), 2));
    const tensor each = ctc_loss(log_p.value(), words, steps, lengths, o, reduction::none);
    for (index_t n = 0; n < 5; ++n) check_near(each(n), v[static_cast<std::size_t>(2 + n)]);
    const variable loss = ctc_loss(log_p, words, steps, lengths, o);
    check_near(loss.item(), v[7]);
    check_near(ctc_loss(log_p.value(), words, steps, lengths, o, reduction::sum).item(), v[8]);
    loss.backward();
    for (index_t i = 0; i < 140; ++i) check_near(log_p.grad().data()[i], v[static_cast<std::size_t>(9 + i)]);
  }
  CHECK(cases == 3);
}

TEST_CASE("the gradient of ctc_loss is that of the scores before a log_softmax") {
  const ctc_options o{.zero_infinity = true};
  const auto check = [&](const auto& loss) { differences::check(loss, 140, scores()); };
  check([&](const auto& x) { return ctc_loss(log_softmax(x, 2), labels, steps, lengths, o); });
  check([&](const auto& x) { return ctc_loss(log_softmax(x, 2), labels, steps, lengths, o, reduction::none); });
  // Samples in front of steps, in memory, and an operand with strides.
  check([&](const auto& x) {
    const variable<double, 3> by_sample = x.permute({1, 0, 2});
    const variable<double, 3> copy = by_sample * 1.5;
    return ctc_loss(log_softmax(copy, 2).permute({1, 0, 2}), labels, steps, lengths, o);
  });
}

TEST_CASE("ctc_loss takes labels in a row, lengths as tensors, and one sample alone") {
  const tensor log_p = log_softmax(scores(), 2);
  const tensor<std::int32_t, 1> steps_as_tensor = {7, 5, 4, 4, 6}, lengths_as_tensor = {3, 0, 1, 4, 2};
  const tensor each = ctc_loss(log_p, labels, steps, lengths, reduction::none);
  CHECK(same_bits(each, eval(ctc_loss(log_p, labels_in_a_row, steps, lengths, reduction::none))));
  CHECK(same_bits(
      each, eval(ctc_loss(log_p, labels.cast<std::uint8_t>(), steps_as_tensor, lengths_as_tensor, reduction::none))));
  CHECK(each(3) == infinity);
  CHECK(ctc_loss(log_p.select(1, 0), labels[0], {7}, {3}, reduction::none).item() == each(0));
  CHECK(ctc_loss(log_p.select(1, 0), labels[0], {7}, {3}).item() == Approx(each(0) / 3));
  CHECK(ctc_loss(log_p.select(1, 1), labels[1], full<int>(5), full<int>(0)).item() == each(1));
  // No steps spell no labels.
  const tensor none = ctc_loss(log_p, labels, {0, 0, 7, 7, 7}, lengths, reduction::none);
  CHECK((none(0) == infinity && none(1) == 0));
  CHECK(eval(ctc_loss(zeros<float>({7, 0, 4}), zeros<int>({0, 4}), {}, {}, reduction::none)).numel() == 0);
}

TEST_CASE("ctc_loss of many steps and far scores neither overflows nor loses digits") {
  generator gen(1);
  const index_t frames = 600;
  const tensor wild = log_softmax(30 * randn<double>(gen, {frames, 2, 5}), 2);
  const auto words = randint(gen, 1, 5, {2, 100});
  const std::vector<index_t> all(2, frames), hundred(2, 100);
  const tensor exact = ctc_loss(wild, words, all, hundred, reduction::none);
  const variable<float, 3> rough = cast<float>(wild);
  const variable loss = ctc_loss(rough, words, all, hundred, reduction::none);
  for (index_t n = 0; n < 2; ++n) {
    CHECK((exact(n) > 1000 && exact(n) < infinity));
    CHECK(loss.value()(n) == Approx(exact(n)).epsilon(1e-5));
  }
  // Of each step both the classes and the classes given the labels have the probability 1.
  loss.backward(ones<float>({2}));
  CHECK(eval(max(abs(sum(rough.grad(), 2)))).item() < 2e-2F);
  // Classes that cannot be.
  tensor<double, 3> sure = full<double>({3, 1, 3}, -infinity);
  sure(0, 0, 1) = sure(1, 0, 0) = sure(2, 0, 1) = 0;
  const variable<double, 3> v = sure;
  const variable none = ctc_loss(v, tensor<int, 2>{{1, 1}}, {3}, {2});
  CHECK(none.item() == 0);
  none.backward();
  CHECK(eval(max(abs(v.grad()))).item() == 0);
}

TEST_CASE("ctc_loss has the same bits on any number of threads, and NaN where a score is NaN") {
  generator gen(2);
  const tensor log_p = log_softmax(randn<float>(gen, {40, 9, 6}), 2);
  const auto words = randint(gen, 1, 6, {9, 12});
  const auto on = [&](int threads) {
    set_num_threads(threads);
    const variable<float, 3> x = log_p.clone();
    const variable loss = ctc_loss(x, words, std::vector<index_t>(9, 40), std::vector<index_t>(9, 12));
    loss.backward();
    return std::pair(loss.value(), x.grad());
  };
  const int before = num_threads();
  const auto one = on(1), three = on(3);
  set_num_threads(before);
  CHECK((same_bits(one.first, three.first) && same_bits(one.second, three.second)));
  tensor<float, 3> bad = log_p.clone();
  bad(20, 4, 0) = std::numeric_limits<float>::quiet_NaN();
  const tensor each = ctc_loss(bad, words, std::vector<index_t>(9, 40), std::vector<index_t>(9, 12), reduction::none);
  CHECK((std::isnan(each(4)) && each(3) > 0));
}

TEST_CASE("ctc_loss trains a network that reads characters") {
  const variable x = scores<float>();
  // [docs:ctc]
  variable log_p = log_softmax(x, 2);  // (T,N,C): the classes of each step, of which 0 is the blank
  const tensor<int, 2> words = {{1, 1, 2}, {3, 1, 0}, {2, 0, 0}, {1, 3, 0}, {3, 2, 1}};  // (N,S), padded
  variable loss = ctc_loss(log_p, words, {7, 7, 4, 6, 7}, {3, 2, 1, 2, 3}, {.zero_infinity = true});
  // [docs:end]
  loss.backward();
  const float before = loss.item();
  x.value() -= x.grad();
  CHECK(ctc_loss(log_softmax(x, 2), words, {7, 7, 4, 6, 7}, {3, 2, 1, 2, 3}).item() < before);
}

TEST_CASE("ctc_loss says what does not fit") {
  const tensor log_p = log_softmax(scores(), 2);
  CHECK_THROWS_WITH(ctc_loss(log_p, labels.slice(0, 0, 4), steps, lengths),
                    "ctc_loss: labels of shape (4, 4) for log-probabilities of shape (7, 5, 4); they have a row for "
                    "each of the 5 samples");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels_in_a_row, steps, {3, 0, 1, 4, 1}),
                    "ctc_loss: 10 labels of all samples, whose lengths are 9 together");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, {7, 5, 4, 4}, lengths), "ctc_loss: 4 input lengths for 5 sequences");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, steps, {1}), "ctc_loss: 1 target lengths for 5 sequences");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, {8, 5, 4, 4, 6}, lengths),
                    "ctc_loss: input length 8 of sequence 0 lies outside [0, 7], the steps of the log-probabilities; "
                    "it is one of input_lengths");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, steps, {5, 0, 1, 4, 2}),
                    "ctc_loss: target length 5 of sequence 0 lies outside [0, 4], the labels; it is one of "
                    "target_lengths");
  CHECK_THROWS_AS(ctc_loss(log_p, labels, steps, {-1, 0, 1, 4, 2}), value_error);
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, steps, lengths, {.blank = 4}), "ctc_loss: the blank is class 4 of 4");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels, steps, {4, 0, 1, 4, 2}),
                    "ctc_loss: label 3 of sample 0 is the blank, class 0; blanks are not written");
  CHECK_THROWS_WITH(ctc_loss(log_p, labels + 1, steps, lengths),
                    "ctc_loss: label 4 at position 8 is out of range [0, 4)");
  CHECK_THROWS_AS(ctc_loss(tensor<float, 3>(), labels, steps, lengths), shape_error);
}

template <class X, class L>
concept has_ctc = requires(const X& x, const L& l) { ctc_loss(x, l, {1}, {1}); };
static_assert(has_ctc<tensor<float, 3>, tensor<int, 2>> &&
              has_ctc<tensor<double, 2, numa<0>>, tensor<int, 1, numa<0>>>);
static_assert(!has_ctc<tensor<float, 2>, tensor<int, 2>> && !has_ctc<tensor<half, 3>, tensor<int, 2>>);
static_assert(!has_ctc<tensor<float, 3>, tensor<float, 2>> && !has_ctc<tensor<float, 3>, tensor<int, 2, numa<0>>>);

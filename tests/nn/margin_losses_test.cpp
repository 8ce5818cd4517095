// tests/nn/margin_losses_test.cpp: losses with margins against plain loops, their gradients against differences, and
// what they reject; the judge compares values and gradients with PyTorch's.
#include "../catch.hpp"

#include <cmath>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

using matrix = tensor<double, 2>;

const matrix left = {{0.3, -1.2, 0.8}, {2.0, 0.1, -0.4}, {-0.7, 0.6, 1.5}, {0.2, 0.9, -1.1}},
             right = {{-0.5, 0.4, 1.9}, {1.8, -0.3, -0.2}, {0.1, -2.2, 0.7}, {-0.6, 1.3, 0.5}},
             third = {{0.9, -0.8, 0.2}, {-1.4, 0.7, 0.3}, {0.5, 1.1, -0.9}, {0.1, 0.8, -1.2}};

double hinge(double x) { return x > 0 ? x : 0; }

/// The losses of rows are those of `formula`, their sum and mean too.
template <class Loss, class Formula>
void check(const Loss& loss, const Formula& formula) {
  const auto all = eval(loss(reduction::none));
  double total = 0;
  for (index_t i = 0; i < all.numel(); ++i) {
    CHECK(all(i) == Approx(formula(i)).margin(1e-14));
    total += formula(i);
  }
  CHECK(eval(loss(reduction::sum)).item() == Approx(total));
  CHECK(eval(loss(reduction::mean)).item() == Approx(total / static_cast<double>(all.numel())));
}

/// The gradient of the mean of loss(x) is that of its differences.
template <class Loss>
void check_gradient(const matrix& at, const Loss& loss) {
  const variable<double, 2> x(at.clone());
  variable<double, 0> y = loss(x);
  y.backward();
  const auto g = x.grad().contiguous();
  for (index_t i = 0; i < at.numel(); ++i) {
    constexpr double h = 1e-6;
    const auto value = [&](double by) {
      matrix moved = at.clone();
      moved.data()[i] += by;
      return eval(loss(moved)).item();
    };
    CHECK(g.data()[i] == Approx((value(h) - value(-h)) / (2 * h)).margin(1e-8));
  }
}

double distance(const matrix& a, const matrix& b, index_t i, double eps = 1e-6) {
  double sum = 0;
  for (index_t j = 0; j < 3; ++j) sum += std::pow(a(i, j) - b(i, j) + eps, 2);
  return std::sqrt(sum);
}
double cosine(const matrix& a, const matrix& b, index_t i) {
  double ab = 0, aa = 1e-12, bb = 1e-12;
  for (index_t j = 0; j < 3; ++j) {
    ab += a(i, j) * b(i, j);
    aa += a(i, j) * a(i, j);
    bb += b(i, j) * b(i, j);
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

TEST_CASE("margin_ranking_loss asks one score to exceed the other") {
  const tensor<double, 1> a = {1, 2, 0, 3}, b = {2, 1, 0, 3}, sign = {1, 1, -1, -1};
  check([&](auto r) { return margin_ranking_loss(a, b, sign, 0.5, r); },
        [&](index_t i) { return hinge(0.5 - sign(i) * (a(i) - b(i))); });
  CHECK(margin_ranking_loss(a, b, sign).item() == 0.25);
  // Equal scores are told apart, though their loss is 0.
  const variable<double, 1> v(zeros<double>({4}));
  variable loss = margin_ranking_loss(v, zeros<double>({4}), sign, reduction::sum);
  loss.backward();
  CHECK((v.grad()(0) == -1 && v.grad()(2) == 1));
  CHECK(std::isnan(margin_ranking_loss(a, b * NAN, sign).item()));
  CHECK_THROWS_WITH(margin_ranking_loss(a, b, zeros<double>({1})),
                    "margin_ranking_loss: prediction of shape (4,) and target of shape (1,) differ; reshape one");
}

TEST_CASE("cosine_embedding_loss turns vectors to each other, or away") {
  const tensor<double, 1> sign = {1, -1, 1, -1};
  const auto formula = [&](index_t i) {
    const double c = cosine(left, right, i);
    return sign(i) == 1 ? 1 - c : hinge(c - 0.1);
  };
  check([&](auto r) { return cosine_embedding_loss(left, right, sign, 0.1, r); }, formula);
  check_gradient(left, [&](const auto& x) { return cosine_embedding_loss(x, right, sign, 0.1); });
  check_gradient(right, [&](const auto& x) { return cosine_embedding_loss(left, x, sign, 0.1); });
  CHECK(cosine_embedding_loss(left[1], right[1], full<double>(-1), 0.1).item() == Approx(formula(1)));
  CHECK(cosine_embedding_loss(left[1], right[1], full<double>(0), 0.1).item() == 0);
  // Long vectors, whose squares multiplied are beyond the range.
  CHECK(cosine_embedding_loss(left * 1e100, right * 1e100, sign, 0.1).item() ==
        Approx(cosine_embedding_loss(left, right, sign, 0.1).item()));
  CHECK_THROWS_WITH(cosine_embedding_loss(left, right, zeros<double>({1})),
                    "cosine_embedding_loss: target of shape (1,) for rows of shape (4, 3); each row has one");
}

TEST_CASE("triplet_margin_loss compares distances") {
  check([&](auto r) { return triplet_margin_loss(left, right, third, {.margin = 0.7}, r); },
        [&](index_t i) { return hinge(distance(left, right, i) - distance(left, third, i) + 0.7); });
  check([&](auto r) { return triplet_margin_loss(left, right, third, {.eps = 0.1, .swap = true}, r); },
        [&](index_t i) {
          const double far = std::min(distance(left, third, i, 0.1), distance(right, third, i, 0.1));
          return hinge(distance(left, right, i, 0.1) - far + 1);
        });
  check_gradient(left, [&](const auto& x) { return triplet_margin_loss(x, right, third); });
  check_gradient(right, [&](const auto& x) { return triplet_margin_loss(left, x, third, {.swap = true}); });
  check_gradient(third, [&](const auto& x) { return triplet_margin_loss(left, right, x, {.swap = true}); });
  CHECK_THROWS_AS(triplet_margin_loss(left, right, zeros<double>({4, 1})), shape_error);
}

TEST_CASE("multi_margin_loss asks the score of the label to exceed the others") {
  const tensor<int, 1> labels = {2, 0, 1, 1};
  const tensor<double, 1> weight = {0.5, 2, 3};
  for (const int p : {1, 2}) {
    const auto formula = [&](index_t i) {
      double sum = 0;
      for (index_t c = 0; c < 3; ++c)
        if (c != labels(i)) sum += std::pow(hinge(0.4 - left(i, labels(i)) + left(i, c)), p);
      return sum / 3;
    };
    check([&](auto r) { return multi_margin_loss(left, labels, {.p = p, .margin = 0.4}, r); }, formula);
    check([&](auto r) { return multi_margin_loss(left, labels, {.p = p, .margin = 0.4, .weight = weight}, r); },
          [&](index_t i) { return formula(i) * weight(labels(i)); });
    check_gradient(left, [&](const auto& x) { return multi_margin_loss(x, labels, {.p = p, .weight = weight}); });
    CHECK(multi_margin_loss(left[2], full<int>(1), {.p = p, .margin = 0.4}).item() == Approx(formula(2)));
  }
  CHECK_THROWS_WITH(multi_margin_loss(left, labels, {.p = 3}), "multi_margin_loss: p is 3; it must be 1 or 2");
  CHECK_THROWS_WITH(multi_margin_loss(left, labels, {.weight = zeros<double>({2})}),
                    "multi_margin_loss: weights of shape (2,) for 3 classes; each class has one");
  CHECK_THROWS_WITH(multi_margin_loss(left, labels + 1),
                    "multi_margin_loss: label 3 at position 0 is out of range [0, 3)");
}

TEST_CASE("multilabel_margin_loss asks the scores of all labels to exceed the rest") {
  const tensor<int, 2> labels = {{2, 0, -1}, {1, -1, 0}, {-1, 0, 1}, {0, 0, -1}};
  const auto formula = [&](index_t i) {
    double sum = 0;
    for (index_t l = 0; l < 3 && labels(i, l) >= 0; ++l)
      for (index_t c = 0; c < 3; ++c) {
        bool asked = false;
        for (index_t k = 0; k < 3 && labels(i, k) >= 0; ++k) asked = asked || labels(i, k) == c;
        if (!asked) sum += hinge(1 - left(i, labels(i, l)) + left(i, c));
      }
    return sum / 3;
  };
  check([&](auto r) { return multilabel_margin_loss(left, labels, r); }, formula);
  CHECK(formula(2) == 0);
  check_gradient(left, [&](const auto& x) { return multilabel_margin_loss(x, labels); });
  CHECK(multilabel_margin_loss(left[0], labels[0]).item() == Approx(formula(0)));
  CHECK(multilabel_margin_loss(left[0], labels[0], reduction::none).item() == Approx(formula(0)));
  CHECK_THROWS_WITH(multilabel_margin_loss(left[0], tensor<int, 1>{3, -1, 0}),
                    "multilabel_margin_loss: label 3 at position 0 is out of range [0, 3)");
  CHECK(multilabel_margin_loss(left[0], tensor<int, 1>{1, -1, 7}).item() > 0);  // what follows -1 is not looked at
  CHECK_THROWS_AS(multilabel_margin_loss(left, labels.slice(1, 0, 2)), shape_error);
}

TEST_CASE("multilabel_soft_margin_loss is the mean of the losses of all classes") {
  const matrix tags = {{1, 0, 1}, {0, 0, 0}, {1, 1, 1}, {0, 1, 0}};
  const tensor<double, 1> weight = {1, 0.5, 4};
  const auto formula = [&](index_t i, bool with) {
    double sum = 0;
    for (index_t c = 0; c < 3; ++c)
      sum += (with ? weight(c) : 1) * std::log1p(std::exp(tags(i, c) > 0 ? -left(i, c) : left(i, c)));
    return sum / 3;
  };
  check([&](auto r) { return multilabel_soft_margin_loss(left, tags, {}, r); },
        [&](index_t i) { return formula(i, false); });
  check([&](auto r) { return multilabel_soft_margin_loss(left, tags, {.weight = weight}, r); },
        [&](index_t i) { return formula(i, true); });
  check_gradient(left, [&](const auto& x) { return multilabel_soft_margin_loss(x, tags, {.weight = weight}); });
}

template <class A, class B, class C>
concept has_ranking = requires(const A& a, const B& b, const C& c) { margin_ranking_loss(a, b, c); };
template <class A, class B, class C>
concept has_cosine = requires(const A& a, const B& b, const C& c) { cosine_embedding_loss(a, b, c); };
template <class A, class B>
concept has_multilabel = requires(const A& a, const B& b) { multilabel_margin_loss(a, b); };

using vector = tensor<double, 1>;
static_assert(has_ranking<vector, variable<double, 1>, vector>);
static_assert(!has_ranking<vector, vector, matrix>);
static_assert(!has_ranking<vector, vector, tensor<double, 1, numa<0>>>);
static_assert(has_cosine<matrix, matrix, vector>);
static_assert(!has_cosine<matrix, matrix, matrix>);
static_assert(!has_cosine<vector, tensor<double, 1, numa<0>>, tensor<double, 0>>);
static_assert(has_multilabel<matrix, tensor<int, 2>>);
static_assert(!has_multilabel<matrix, matrix>);
static_assert(!has_multilabel<matrix, tensor<int, 1>>);
static_assert(!has_multilabel<matrix, tensor<int, 2, numa<0>>>);

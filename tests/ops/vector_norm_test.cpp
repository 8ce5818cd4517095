// tests/ops/vector_norm_test.cpp: norms of any order of vectors and matrices, and distances.
#include "../grad/differences.hpp"

#include <cmath>
#include <limits>

using namespace sinter;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double orders[] = {0, 0.5, 1, 1.5, 2, 3, 7, infinity, -infinity, -1, -2.5};

template <class Line>
double norm_of(const Line& line, double p) {
  double total = 0, least = infinity, most = 0;
  for (const double v : line) {
    const double size = std::abs(v);
    total += p == 0 ? (v != 0 ? 1. : 0.) : std::pow(size, p);
    least = std::min(least, size);
    most = std::max(most, size);
  }
  return p == infinity ? most : p == -infinity ? least : p == 0 ? total : std::pow(total, 1 / p);
}

}  // namespace

TEST_CASE("vector_norm is that of its order, along all axes, one and several") {
  std::mt19937 gen(1);
  const tensor x = differences::random(gen, {3, 4, 5});
  for (const double p : orders) {
    CAPTURE(p);
    CHECK(vector_norm(x, p).item() == Approx(norm_of(x, p)));
    const tensor rows = vector_norm(x, p, 1);
    const tensor kept = vector_norm(x, p, {2, 0}, keepdim);
    REQUIRE((rows.shape() == extents<2>{{3, 5}} && kept.shape() == extents<3>{{1, 4, 1}}));
    CHECK(rows(2, 3) == Approx(norm_of(x.select(0, 2).select(1, 3).contiguous(), p)));
    CHECK(kept(0, 1, 0) == Approx(norm_of(x.select(1, 1).contiguous(), p)));
  }
  CHECK(vector_norm(x).item() == Approx(norm_of(x, 2)));
  CHECK(vector_norm(full<float>(-3), 4, -1).item() == Approx(3));
  CHECK(vector_norm(matmul(x.select(0, 0), x.select(0, 1).transpose()), 3, 0).shape() == extents<1>{{4}});
}

TEST_CASE("norms neither overflow nor underflow where the result does not") {
  const tensor<float, 1> large = {1e30f, -2e30f}, small = {1e-30f, 2e-30f};
  for (const double p : {0.5, 1.5, 3., 20., -1., -3.}) {
    CAPTURE(p);
    CHECK(vector_norm(large, p).item() == Approx(norm_of(std::vector<double>{1, 2}, p) * 1e30));
    CHECK(vector_norm(small, p).item() == Approx(norm_of(std::vector<double>{1, 2}, p) * 1e-30));
  }
  const tensor<float, 1> endless = {1, static_cast<float>(infinity)}, none = {static_cast<float>(not_a_number), 1};
  CHECK((vector_norm(endless, 3).item() == infinity && vector_norm(endless, -1).item() == 1));
  CHECK(vector_norm(full<double>({2}, infinity), -1).item() == infinity);
  for (const double p : {0.5, 1., 2., 3., -1., infinity, -infinity}) CHECK(std::isnan(vector_norm(none, p).item()));
  CHECK(vector_norm(none, 0).item() == 2);
  const half x = cast<half>(vector_norm(cast<half>(full<float>({300}, 300)), 3)).item();
  CHECK(static_cast<float>(x) == Approx(300 * std::cbrt(300.)).epsilon(1e-3));
}

TEST_CASE("norms of zeros and of nothing") {
  const tensor<double, 2> x = {{0, 0}, {0, 3}};
  for (const double p : {0.5, 1., 1.5, 2., 3., infinity}) {
    const variable<double, 2> v(x);
    variable y = vector_norm(v, p, 1);
    CHECK((y(0) == 0 && y(1) == Approx(3)));
    y.backward(ones<double>({2}));
    CAPTURE(p);
    CHECK((v.grad()(0, 0) == 0 && v.grad()(0, 1) == 0 && v.grad()(1, 0) == 0 && v.grad()(1, 1) == Approx(1)));
  }
  for (const double p : {-1., -2.5}) {
    const variable<double, 2> v(x);
    variable y = vector_norm(v, p, 1);
    CHECK((y(0) == 0 && y(1) == 0));
    y.backward(ones<double>({2}));
    CHECK((v.grad()(0, 0) == 0 && v.grad()(1, 1) == 0));
  }
  const tensor nothing = empty<float>({2, 0});
  CHECK((vector_norm(nothing, 3).item() == 0 && vector_norm(nothing, 0).item() == 0));
  CHECK(vector_norm(nothing, 1.5, 1)(1) == 0);
  CHECK(vector_norm(nothing, infinity, 0).numel() == 0);
  CHECK_THROWS_WITH(vector_norm(nothing, infinity, 1),
                    "vector_norm: no values along the reduced axes of shape (2, 0); the order inf needs them");
  CHECK_THROWS_WITH(vector_norm(nothing, -1),
                    "vector_norm: no values along the reduced axes of shape (2, 0); the order -1 needs them");
  CHECK_THROWS_WITH(vector_norm(x, not_a_number), "vector_norm: the order is NaN; it must be a number, or an infinity");
  CHECK_THROWS_WITH(vector_norm(x, 2, 2), "vector_norm: axis 2 is out of range for rank 2; use -2 to 1");
  CHECK_THROWS_WITH(vector_norm(x, 2, {0, 0}), "vector_norm: axis 0 is named twice");
}

TEST_CASE("gradients of norms agree with differences, and of equal sizes share") {
  std::mt19937 gen(2);
  const tensor x = differences::random(gen, {4, 3});
  for (const double p : orders) {
    CAPTURE(p);
    differences::check([p](const auto& v) { return vector_norm(v, p, 1); }, 12, x);
    differences::check([p](const auto& v) { return vector_norm(2 * v, p, {0, 1}, keepdim); }, 12, x);
  }
  const variable<float, 1> v(tensor<float, 1>{2, -2, 1});
  vector_norm(v, infinity).backward();
  CHECK((v.grad()(0) == 0.5f && v.grad()(1) == -0.5f && v.grad()(2) == 0));
}

TEST_CASE("norms can be differentiated twice") {  // as PyTorch 2.15 does it
  const variable<double, 1, cpu, 2> v(tensor<double, 1>{1, 2, 0});
  const variable slope = grad(vector_norm(v, 3), v);
  eval(sum(slope)).backward();
  const double expected[] = {0.20544037758537326, -0.10272018879268652, 0};
  for (index_t i = 0; i < 3; ++i) CHECK(v.grad()(i) == Approx(expected[i]).margin(1e-12));
  CHECK_THROWS_WITH(vector_norm(v, infinity), "vector_norm: the order inf has no second derivative");
}

TEST_CASE("matrix_norm sums rows or columns") {
  const tensor<double, 2> x = {{1, -2, 3}, {-4, 5, 6}};
  CHECK(matrix_norm(x).item() == Approx(std::sqrt(91.)));
  CHECK((matrix_norm(x, 1).item() == 9 && matrix_norm(x, -1).item() == 5));
  CHECK((matrix_norm(x, infinity).item() == 15 && matrix_norm(x, -infinity).item() == 6));
  CHECK(matrix_norm(x, 1, {1, 0}).item() == 15);
  CHECK(matrix_norm(x, infinity, {0, 1}, keepdim).shape() == extents<2>{{1, 1}});
  std::mt19937 gen(3);
  const tensor many = differences::random(gen, {3, 2, 4});
  const tensor each = matrix_norm(many, frobenius, {2, 0});
  REQUIRE(each.shape() == extents<1>{{2}});
  CHECK(each(1) == Approx(norm_of(many.select(1, 1).contiguous(), 2)));
  for (const double p : {1., -1., infinity, -infinity})
    differences::check([p](const auto& v) { return matrix_norm(v, p, {-1, 0}); }, 24, many);
  CHECK_THROWS_WITH(matrix_norm(x, 3),
                    "matrix_norm: order 3; it may be 1, -1, an infinity, its negative, and frobenius; "
                    "<sinter/linalg.hpp> has those of singular values");
  CHECK_THROWS_WITH(matrix_norm(x, 1, {1, 1}), "matrix_norm: axis 1 is named twice");
  CHECK_THROWS_WITH(matrix_norm(empty<float>({0, 2}), 1),
                    "matrix_norm: no values along the reduced axes of shape (0, 2); the order 1 needs them");
}

TEST_CASE("normalize makes lines of length 1, and leaves zeros") {
  const tensor<double, 2> x = {{3, 4}, {0, 0}};
  const tensor y = normalize(x), by_sizes = normalize(x, 1, -1);
  CHECK((y(0, 0) == Approx(0.6) && y(1, 0) == 0 && by_sizes(0, 1) == Approx(4 / 7.)));
  CHECK(normalize(x, 2, 1, 10)(0, 0) == Approx(0.3));
  std::mt19937 gen(4);
  differences::check([](const auto& v) { return normalize(v, 1.5, 0); }, 12, differences::random(gen, {4, 3}));
}

TEST_CASE("dist, pairwise_distance and vecdot broadcast") {
  std::mt19937 gen(5);
  const tensor a = differences::random(gen, {3, 4});
  const tensor b = differences::random(gen, {4});
  CHECK(dist(a, b, 3).item() == Approx(vector_norm(a - b, 3).item()));
  const tensor pairs = pairwise_distance(a, b, {.p = 1, .eps = 0.5});
  CHECK(pairs(1) == Approx(vector_norm(a.select(0, 1) - b + 0.5, 1).item()));
  CHECK(pairwise_distance(a, a, keepdim).shape() == extents<2>{{3, 1}});
  CHECK(pairwise_distance(a, a)(0) == Approx(2e-6));
  const tensor products = vecdot(a, b);
  CHECK(products(2) == Approx(eval(dot(a.select(0, 2), b)).item()));
  CHECK(eval(vecdot(a, a, 0)).shape() == extents<1>{{4}});
  differences::check([](const auto& v, const auto& w) { return dist(v, w, 1.5); }, 12, a, b);
  differences::check([](const auto& v, const auto& w) { return eval(vecdot(v, w)); }, 12, a, b);
  const variable<float, 1> v(tensor<float, 1>{1, 2});
  dist(v, v.value()).backward();
  CHECK((v.grad()(0) == 0 && v.grad()(1) == 0));
}

TEST_CASE("cdist gives the distances of all to all, and pdist those of each pair") {
  std::mt19937 gen(6);
  const tensor a = differences::random(gen, {2, 5, 3});
  const tensor b = differences::random(gen, {4, 3});
  for (const double p : {0., 0.5, 1., 2., 3., infinity}) {
    CAPTURE(p);
    const tensor far = cdist(a, b, {.p = p});
    REQUIRE(far.shape() == extents<3>{{2, 5, 4}});
    CHECK(far(1, 4, 2) == Approx(norm_of(eval(a.select(0, 1).select(0, 4) - b.select(0, 2)), p)));
    differences::check([p](const auto& v, const auto& w) { return cdist(v, w, {.p = p}); }, 10, a, b);
  }
  const tensor way = cdist(a, b, {.way = distance_way::product});
  CHECK(vector_norm(way - cdist(a, b), infinity).item() < 1e-12);
  differences::check([](const auto& v, const auto& w) { return cdist(v, w, {.way = distance_way::product}); }, 10, a,
                     b);
  const variable<double, 2> v(differences::random(gen, {30, 3}));
  const variable large = cdist(v, v);
  CHECK(vector_norm(large.value() - cdist(v.value(), v.value(), {.way = distance_way::differences}), infinity).item() <
        1e-7);
  CHECK(equal(large.value(), cdist(v.value(), v.value(), {.way = distance_way::product})));
  const tensor few = v.value().slice(0, 0, 25);
  CHECK(equal(cdist(few, few), cdist(few, few, {.way = distance_way::differences})));
  CHECK_FALSE(equal(cdist(few, few), cdist(few, few, {.way = distance_way::product})));
  large.backward(ones<double>({30, 30}));
  CHECK(std::isfinite(eval(sum(v.grad())).item()));
  const tensor pairs = pdist(b, 1);
  REQUIRE(pairs.shape() == extents<1>{{6}});
  CHECK(pairs(3) == Approx(norm_of(eval(b.select(0, 1) - b.select(0, 2)), 1)));
  differences::check([](const auto& w) { return pdist(w); }, 12, b);
  CHECK(pdist(b.slice(0, 0, 1)).numel() == 0);
  CHECK(cdist(empty<float>({2, 0}), empty<float>({3, 0}), {.p = infinity})(1, 2) == 0);
  CHECK(cdist(b.slice(0, 0, 0), b).shape() == extents<2>{{0, 4}});
  CHECK_THROWS_WITH(cdist(b, b.slice(1, 0, 2)), "cdist: vectors of 3 and of 2 elements, shapes (4, 3) and (4, 2)");
  CHECK_THROWS_WITH(cdist(b, b, {.p = -1}), "cdist: the order is -1; it must be 0 or more");
}

TEST_CASE("cosine_similarity is that of broadcast operands") {
  std::mt19937 gen(7);
  const tensor a = differences::random(gen, {2, 3});
  const tensor b = differences::random(gen, {4, 1, 3});
  const tensor y = cosine_similarity(a, b, -1);
  REQUIRE(y.shape() == extents<2>{{4, 2}});
  const tensor p = a.select(0, 1), q = b.select(0, 3).select(0, 0);
  CHECK(y(3, 1) == Approx(eval(dot(p, q)).item() / norm_of(p, 2) / norm_of(q, 2)));
  CHECK(cosine_similarity(a, b, 0).shape() == extents<2>{{2, 3}});
  CHECK(cosine_similarity(a, zeros_like(a))(0) == 0);
  CHECK(cosine_similarity(p, p, 0, 100).item() == Approx(norm_of(p, 2) * norm_of(p, 2) / 1e4));
  differences::check([](const auto& v, const auto& w) { return cosine_similarity(v, w, 2); }, 6, a, b);
  CHECK_THROWS_WITH(cosine_similarity(a, a, 2), "cosine_similarity: axis 2 is out of range for rank 2; use -2 to 1");
}

TEST_CASE("local_response_norm sums squares of neighbouring channels") {
  std::mt19937 gen(8);
  const tensor x = differences::random(gen, {2, 5, 3, 2});
  for (const index_t size : {1, 2, 3, 7}) {
    CAPTURE(size);
    const tensor y = local_response_norm(x, size, {.alpha = 0.5, .beta = 0.6, .k = 1.5});
    REQUIRE(y.shape() == x.shape());
    for (index_t c = 0; c < 5; ++c) {
      double total = 0;
      for (index_t i = c - size / 2; i <= c + (size - 1) / 2; ++i)
        if (i >= 0 && i < 5) total += x(1, i, 2, 1) * x(1, i, 2, 1);
      CHECK(y(1, c, 2, 1) == Approx(x(1, c, 2, 1) / std::pow(1.5 + 0.5 * total / static_cast<double>(size), 0.6)));
    }
  }
  differences::check([](const auto& v) { return local_response_norm(v, 3, {.alpha = 0.5}); }, 20, x);
  CHECK(local_response_norm(empty<float>({0, 3, 2}), 3).shape() == extents<3>{{0, 3, 2}});
  CHECK_THROWS_WITH(local_response_norm(x, 0), "local_response_norm: a window of 0 channels; it must be 1 or more");
}

// tests/ops/products_test.cpp: products by PyTorch's names, tensordot, chains of matrices and einsum.
#include "../grad/differences.hpp"

#include <limits>
#include <map>
#include <string>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

template <int R>
tensor<double, R> some(const extents<R>& shape, double first = 1) {
  const index_t n = shape.numel();
  const auto line = eval(sin(arange<double>(n) * 1.7 + first));
  if constexpr (R == 0) return line.select(0, 0);
  else return line.reshape(shape.values);
}
template <class... N>
auto some_of(N... n) {
  return some(extents<static_cast<int>(sizeof...(N))>{{static_cast<index_t>(n)...}}, static_cast<double>(sizeof...(N)));
}

template <class A, class B>
void check_same(const A& got, const B& expected) {
  const auto y = eval(got), z = eval(expected);
  REQUIRE(y.shape() == z.shape());
  if (y.numel() > 0) CHECK(eval(max(abs(y - z))).item() < 1e-12);
}

/// A tensor with the names of its axes, as plain numbers.
struct plain {
  std::string names;
  std::vector<index_t> shape;
  std::vector<double> values;
};
template <class X>
plain plain_of(const std::string& names, const X& x) {
  const auto dense = x.contiguous();
  return {names, {x.shape().begin(), x.shape().end()}, {dense.begin(), dense.end()}};
}
/// The sum of products over all axes that the result does not have, element by element.
std::vector<double> summed(const std::vector<plain>& operands, const std::string& result) {
  std::string names = result;
  std::map<char, index_t> extent;
  for (const plain& p : operands)
    for (std::size_t d = 0; d < p.names.size(); ++d) {
      index_t& n = extent[p.names[d]];
      n = std::max(n, p.shape[d]);
      if (names.find(p.names[d]) == std::string::npos) names += p.names[d];
    }
  index_t all = 1, kept = 1;
  for (std::size_t i = 0; i < names.size(); ++i) (i < result.size() ? kept : all) *= extent[names[i]];
  std::vector<double> sums(static_cast<std::size_t>(kept));
  for (index_t k = 0; k < kept * all; ++k) {
    std::map<char, index_t> at;
    index_t rest = k;
    for (std::size_t i = names.size(); i-- > 0; rest /= extent[names[i]]) at[names[i]] = rest % extent[names[i]];
    double product = 1;
    for (const plain& p : operands) {
      index_t place = 0;
      for (std::size_t d = 0; d < p.names.size(); ++d)
        place = place * p.shape[d] + (p.shape[d] == 1 ? 0 : at[p.names[d]]);
      product *= p.values[static_cast<std::size_t>(place)];
    }
    sums[static_cast<std::size_t>(k / all)] += product;
  }
  return sums;
}

template <class Y>
void check_sums(const Y& y, const std::vector<double>& expected) {
  const auto dense = y.contiguous();
  REQUIRE(static_cast<std::size_t>(dense.numel()) == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(dense.data()[i] - expected[i]) < 1e-12 * (1 + std::abs(expected[i])));
}

const float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("mm, bmm and outer are products of one kind") {
  const auto a = some_of(3, 4), b = some_of(4, 2);
  check_same(mm(a, b), matmul(a, b));
  check_same(bmm(some_of(2, 3, 4), some_of(2, 4, 5)), matmul(some_of(2, 3, 4), some_of(2, 4, 5)));
  const tensor<float, 1> u = {1, 2, 3}, v = {4, 5};
  const tensor table = outer(u + 1, v);
  CHECK((table.shape() == extents<2>{{3, 2}} && table(0, 1) == 10 && table(2, 0) == 16));
  CHECK(eval(ger(u, v))(1, 1) == 10);
  const tensor<std::int8_t, 1> small = {1, 2};
  CHECK(eval(outer(small, small))(1, 1) == 4);
  CHECK(eval(outer(zeros<float>({0}), v)).shape() == extents<2>{{0, 2}});
}

TEST_CASE("addmm and its relatives add a multiple of a product to a multiple of x") {
  const auto a = some_of(3, 4), b = some_of(4, 2);
  const auto x = some_of(2);
  const auto row = some_of(3, 1);
  check_same(addmm(x, a, b, 0.5, 2), 0.5 * x + 2 * matmul(a, b));
  check_same(addmm(row, a, b), row + matmul(a, b));
  const auto c = some_of(2, 3, 4), d = some_of(2, 4, 5);
  check_same(baddbmm(some_of(5), c, d, 3, -1), 3 * some_of(5) - matmul(c, d));
  check_same(addbmm(some_of(3, 5), c, d, 0.5, 2), 0.5 * some_of(3, 5) + 2 * sum(matmul(c, d), 0));
  check_same(addmv(some_of(1), a, some_of(4), 2, 3), 2 * some_of(1) + 3 * matmul(a, some_of(4)));
  check_same(addr(some_of(4), some_of(3), some_of(4), 2, 3), 2 * some_of(4) + 3 * outer(some_of(3), some_of(4)));
  const tensor<std::int32_t, 2> n = {{1, 2}, {3, 4}};
  CHECK(addmm(n, n, n, 2, 3)(1, 0) == 6 + 3 * 15);
}

TEST_CASE("with beta 0 the added operand is not read") {
  const tensor<float, 2> x = full<float>({2, 2}, infinity), a = {{1, 2}, {3, 4}};
  CHECK(addmm(x, a, a, 0)(0, 0) == 7);
  const variable<float, 2> v(x);
  const variable product = addmm(v, a, a, 0.0, 2.0);
  CHECK(product.value()(1, 1) == 44);
  CHECK_THROWS_AS(sum(product).backward(), autograd_error);
}

TEST_CASE("gradients of sums with products are those of their formulas") {
  const auto a = some_of(3, 4), b = some_of(4, 2);
  differences::check([](const auto& x, const auto& p, const auto& q) { return addmm(x, p, q, 0.5, 2); }, 8, some_of(2),
                     a, b);
  differences::check([](const auto& x, const auto& p, const auto& q) { return addbmm(x, p, q, 0.5, 2); }, 8,
                     some_of(3, 1), some_of(2, 3, 4), some_of(2, 4, 2));
  differences::check([](const auto& x, const auto& p, const auto& q) { return addmv(x, p, q, 0.5, 2); }, 8, some_of(3),
                     a, some_of(4));
  differences::check([](const auto& p, const auto& q) { return cross(p, q, 0); }, 8, some_of(3, 1), some_of(3, 2));
  differences::check([](const auto& p, const auto& q) { return kron(p, q); }, 8, a, b);
  differences::check([](const auto& p, const auto& q) { return tensordot(p, q, {0, 2}, {1, 0}); }, 8, some_of(2, 3, 4),
                     some_of(4, 2, 2));
  differences::check([](const auto& p, const auto& q, const auto& r) { return multi_dot(p, q, r); }, 8, some_of(3), a,
                     some_of(4));
  differences::check([](const auto& p, const auto& q, const auto& w, const auto& c) { return bilinear(p, q, w, c); }, 8,
                     some_of(2, 3), some_of(2, 4), some_of(2, 3, 4), some_of(2));
  differences::check([](const auto& p, const auto& q) { return einsum<"bij, bkj -> bik">(p, q); }, 8, some_of(2, 3, 4),
                     some_of(2, 2, 4));
  differences::check([](const auto& p, const auto& q, const auto& r) { return einsum<"ii,ij,...j->...j">(p, q, r); }, 8,
                     some_of(3, 3), some_of(3, 2), some_of(2, 1));
  differences::check([](const auto& p, const auto& q) { return einsum<"ij,ij->i">(p, q); }, 8, a, some_of(1, 4));
}

TEST_CASE("cross multiplies vectors of three") {
  const tensor<float, 2> x = {{1, 0, 0}, {1, 2, 3}}, y = {{0, 1, 0}, {4, 5, 6}};
  const tensor z = cross(x, y);
  CHECK((z(0, 0) == 0 && z(0, 2) == 1 && z(1, 0) == -3 && z(1, 1) == 6 && z(1, 2) == -3));
  CHECK(cross(x.slice(0, 0, 1), y)(1, 2) == 5);
  CHECK(cross(x.transpose(), y.transpose(), 0)(1, 1) == 6);
  CHECK_THROWS_WITH(cross(x, y, 0), "cross: shapes (2, 3) and (2, 3); both must have 3 elements on axis 0");
  CHECK_THROWS_AS(cross(x, y, 2), index_error);
}

TEST_CASE("kron puts a block at each element") {
  const tensor<float, 2> a = {{1, 2}}, b = {{1, 10}, {100, 1000}};
  const tensor y = kron(a, b);
  CHECK((y.shape() == extents<2>{{2, 4}} && y(0, 1) == 10 && y(1, 2) == 200 && y(1, 3) == 2000));
  CHECK(kron(zeros<float>({0, 3}), b).shape() == extents<2>{{0, 6}});
  const tensor<float, 0> three = sum(full<float>({1}, 3));
  CHECK(kron(three, three).item() == 9);
}

TEST_CASE("tensordot sums over pairs of axes") {
  const auto a = some_of(2, 3, 4), b = some_of(4, 3, 5);
  check_sums(tensordot(a, b, {1, 2}, {1, 0}), summed({plain_of("ijk", a), plain_of("kjm", b)}, "im"));
  check_sums(tensordot(a, b, {-1}, {0}), summed({plain_of("ijk", a), plain_of("kmn", b)}, "ijmn"));
  check_sums(tensordot<0>(some_of(2), some_of(3)),
             summed({plain_of("i", some_of(2)), plain_of("j", some_of(3))}, "ij"));
  check_same(tensordot(some_of(3, 4), some_of(3, 4)), sum(square(some_of(3, 4))));
  CHECK(tensordot<1>(zeros<float>({2, 0}), zeros<float>({0, 3}))(1, 2) == 0);
  CHECK_THROWS_WITH(tensordot(a, b, {0}, {0}),
                    "tensordot: axis 0 of shape (2, 3, 4) and axis 0 of shape (4, 3, 5) are summed together, but their "
                    "extents differ");
  CHECK_THROWS_WITH(tensordot(a, a, {1, -2}, {1, 1}), "tensordot: axis 1 of shape (2, 3, 4) is named twice");
  CHECK_THROWS_AS(tensordot(a, b, {3}, {0}), index_error);
}

TEST_CASE("multi_dot multiplies in the order that is cheapest, to the same product") {
  const auto a = some_of(2, 30), b = some_of(30, 3), c = some_of(3, 20), d = some_of(20, 1);
  check_same(multi_dot(a, b, c, d), matmul(matmul(matmul(a, b), c), d));
  check_same(multi_dot(a, b), matmul(a, b));
  check_same(multi_dot(some_of(3), c, d), matmul(matmul(some_of(3), c), d));
  check_same(multi_dot(some_of(3), c, some_of(20)), dot(some_of(3), matmul(c, some_of(20))));
  // Extents of the example of Cormen et al.: ((A1 (A2 A3)) ((A4 A5) A6)).
  const std::vector<int> split = detail::order_of_chain({30, 35, 15, 5, 10, 20, 25});
  CHECK((split[0 * 6 + 5] == 2 && split[0 * 6 + 2] == 0 && split[3 * 6 + 5] == 4));
  CHECK_THROWS_WITH(
      multi_dot(a, c, d),
      "multi_dot: operands 0 and 1, as matrices of shapes (2, 30) and (3, 20), do not fit: the columns of "
      "the first must be as many as the rows of the second");
}

TEST_CASE("bilinear weighs the products of two vectors' elements") {
  const auto x = some_of(2, 5, 3), y = some_of(2, 5, 4);
  const auto w = some_of(6, 3, 4);
  const auto b = some_of(6);
  const auto products = summed({plain_of("nti", x), plain_of("ntj", y), plain_of("oij", w)}, "nto");
  check_sums(bilinear(x, y, w), products);
  check_same(bilinear(x, y, w, b), bilinear(x, y, w) + b);
  check_same(bilinear(x[1][2], y[1][2], w, b), bilinear(x, y, w, b)[1][2]);
  CHECK(bilinear(zeros<float>({0, 3}), zeros<float>({0, 4}), zeros<float>({5, 3, 4})).shape() == extents<2>{{0, 5}});
  CHECK_THROWS_WITH(bilinear(x, some_of(2, 4, 4), w),
                    "bilinear: shapes (2, 5, 3) and (2, 4, 4) differ before their last axis");
  CHECK_THROWS_WITH(bilinear(y, x, w),
                    "bilinear: w of shape (6, 3, 4) is not for x1 and x2 of shapes (2, 5, 4) and (2, 5, 3); it must be "
                    "(outputs,4,3)");
  CHECK_THROWS_WITH(bilinear(x, y, w, some_of(5)), "bilinear: a bias of shape (5,) for 6 outputs; it must be (6,)");
}

TEST_CASE("einsum sums products as its equation says") {
  const auto a = some_of(2, 3, 4), b = some_of(4, 3, 5);
  const auto m = some_of(3, 3);
#define CHECK_SUMS(equation, result, ...) check_sums(equation, summed({__VA_ARGS__}, result))
  CHECK_SUMS((einsum<"ijk,kjm->im">(a, b)), "im", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,kjm->mi">(a, b)), "mi", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,kjm->mkij">(a, b)), "mkij", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,kjm->jim">(a, b)), "jim", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,kjm">(a, b)), "im", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,kjm->">(a, b)), "", plain_of("ijk", a), plain_of("kjm", b));
  CHECK_SUMS((einsum<"ijk,njk->njk">(a, some_of(6, 3, 4))), "njk", plain_of("ijk", a),
             plain_of("njk", some_of(6, 3, 4)));
  CHECK_SUMS((einsum<"ijk,ijk->i">(a, a)), "i", plain_of("ijk", a), plain_of("ijk", a));
  CHECK_SUMS((einsum<"ii">(m)), "", plain_of("ii", m));
  CHECK_SUMS((einsum<"ii->i">(m)), "i", plain_of("ii", m));
  CHECK_SUMS((einsum<"ba">(some_of(2, 3))), "ab", plain_of("ba", some_of(2, 3)));
  CHECK_SUMS((einsum<"bA">(some_of(2, 3))), "Ab", plain_of("bA", some_of(2, 3)));
  CHECK_SUMS((einsum<"iji,ij->j">(some_of(3, 2, 3), some_of(3, 2))), "j", plain_of("iji", some_of(3, 2, 3)),
             plain_of("ij", some_of(3, 2)));
  CHECK_SUMS((einsum<"iii->i">(some_of(3, 3, 3))), "i", plain_of("iii", some_of(3, 3, 3)));
  CHECK_SUMS((einsum<" i j , j k , k l -> l i ">(m, some_of(3, 5), some_of(5, 2))), "li", plain_of("ij", m),
             plain_of("jk", some_of(3, 5)), plain_of("kl", some_of(5, 2)));
  CHECK_SUMS((einsum<"i,,i->i">(some_of(3), some_of(), some_of(3))), "i", plain_of("i", some_of(3)),
             plain_of("", some_of()), plain_of("i", some_of(3)));
  CHECK_SUMS((einsum<"...ij,...jk->...ik">(some_of(2, 1, 3, 4), some_of(5, 4, 2))), "abik",
             plain_of("abij", some_of(2, 1, 3, 4)), plain_of("bjk", some_of(5, 4, 2)));
  CHECK_SUMS((einsum<"i...,...j">(some_of(3, 2), some_of(2, 4))), "aij", plain_of("ia", some_of(3, 2)),
             plain_of("aj", some_of(2, 4)));
  CHECK_SUMS((einsum<"i...->i">(a)), "i", plain_of("iab", a));
  CHECK_SUMS((einsum<"...->...">(a)), "abc", plain_of("abc", a));
  // An extent of 1 is repeated, also where it is summed over.
  CHECK_SUMS((einsum<"ij,jk->ik">(some_of(2, 1), some_of(3, 4))), "ik", plain_of("ij", some_of(2, 1)),
             plain_of("jk", some_of(3, 4)));
  CHECK_SUMS((einsum<"bij,bjk->bik">(some_of(1, 2, 3), some_of(4, 3, 2))), "bik", plain_of("bij", some_of(1, 2, 3)),
             plain_of("bjk", some_of(4, 3, 2)));
#undef CHECK_SUMS
  CHECK(einsum<"ij->ji">(a[0]).data() == a.data());
}

TEST_CASE("einsum keeps element types, takes expressions and empty tensors, and refuses other extents") {
  const tensor<std::int32_t, 2> n = {{1, 2}, {3, 4}};
  const tensor<std::int32_t, 1> rows = einsum<"ij->i">(n);
  CHECK((rows(0) == 3 && rows(1) == 7));
  CHECK(einsum<"ij,ij->">(n, n).item() == 30);
  const auto a = some_of(2, 3);
  check_same(einsum<"ij,j->i">(a * 2, some_of(3) + 1), matmul(eval(a * 2), eval(some_of(3) + 1)));
  CHECK(einsum<"ij,jk->ik">(zeros<float>({2, 0}), zeros<float>({0, 3}))(1, 2) == 0);
  CHECK(einsum<"ij->j">(zeros<float>({0, 3}))(2) == 0);
  CHECK_THROWS_WITH((einsum<"ij,jk->ik">(a, a)),
                    "einsum: axis j has 3 elements in operand 0 of shape (2, 3) and 2 in operand 1 of shape (2, 3)");
  CHECK_THROWS_WITH((einsum<"ii->i">(a)),
                    "einsum: axis i has 2 elements in operand 0 of shape (2, 3) and 3 in operand 0 of shape (2, 3)");
  CHECK_THROWS_WITH((einsum<"...i,...j->...">(a, some_of(3, 2))),
                    "einsum: axis ... has 2 elements in operand 0 of shape (2, 3) and 3 in operand 1 of shape (3, 2)");
}

// tests/ops/diagonal_test.cpp: diagonals of matrices, and what lies below and above them.
#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

const index_t offsets[] = {-5, -3, -1, 0, 1, 2, 6};

tensor<float, 2> matrix(index_t n, index_t m) { return eval(arange<float>(n * m).reshape({n, m}) + 1); }

}  // namespace

TEST_CASE("diagonal shows the elements of a matrix at an offset, or of two axes of more") {
  const tensor x = matrix(3, 4);
  for (const index_t o : offsets) {
    const tensor d = diagonal(x, o);
    index_t count = 0;
    for (index_t i = 0; i < 3; ++i)
      if (i + o >= 0 && i + o < 4) CHECK(d(count++) == x(i, i + o));
    CHECK(d.numel() == count);
  }
  CHECK(x.diagonal().data() == x.data());
  const tensor y = eval(arange<float>(24).reshape({2, 3, 4}));
  const tensor d = diagonal(y, 1, 2, 0);
  CHECK(d.shape() == extents<2>{{3, 1}});
  CHECK(d(2, 0) == y(1, 2, 0));
  CHECK(trace(x).item() == 1 + 6 + 11);
  CHECK_THROWS_WITH(diagonal(x, 0, 1, -1), "diagonal: axis 1 is named twice");
  CHECK_THROWS_AS(diagonal(x, 0, 0, 2), index_error);
  x.diagonal(1) = full<float>({3}, -1);
  CHECK((x(0, 1) == -1 && x(1, 2) == -1 && x(2, 3) == -1 && x(0, 0) == 1));
}

TEST_CASE("diag_embed and diag put lines on diagonals") {
  const tensor<float, 1> v = {1, 2, 3};
  for (const index_t o : offsets) {
    const tensor m = diag(v, o);
    const index_t n = 3 + (o < 0 ? -o : o);
    CHECK(m.shape() == extents<2>{{n, n}});
    CHECK(sum(m).item() == 6);
    const tensor back = diag(m, o);
    CHECK((back.numel() == 3 && back(0) == 1 && back(2) == 3));
  }
  const tensor blocks = diag_embed(matrix(2, 3), 1);
  CHECK(blocks.shape() == extents<3>{{2, 4, 4}});
  CHECK((blocks(1, 2, 3) == 6 && blocks(1, 3, 3) == 0));
  // What is not on the diagonal is 0 whatever the elements are.
  const tensor<float, 1> odd = {std::numeric_limits<float>::infinity(), 1};
  CHECK(diag(odd)(0, 1) == 0);
}

TEST_CASE("tril and triu keep what lies below and above a diagonal") {
  const tensor x = matrix(3, 4);
  for (const index_t o : offsets) {
    const tensor low = tril(x, o), high = triu(x, o);
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 4; ++j) {
        CHECK(low(i, j) == (j - i <= o ? x(i, j) : 0));
        CHECK(high(i, j) == (j - i >= o ? x(i, j) : 0));
      }
  }
  CHECK(tril(arange<float>(24).reshape({2, 3, 4}))(1, 0, 1) == 0);
  CHECK(triu(x + 1)(0, 3) == 5);
}

TEST_CASE("gradients of diagonals and triangles lie where they came from") {
  const variable<float, 2> x(matrix(3, 3));
  variable loss = 2 * sum(diagonal(x, 1)) + 3 * trace(x) + sum(tril(x, -1)) + 5 * sum(diag_embed(x));
  loss.backward();
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 3; ++j) {
      const int expected = 5 + (j == i + 1 ? 2 : 0) + (j == i ? 3 : 0) + (j < i ? 1 : 0);
      CHECK(x.grad()(i, j) == static_cast<float>(expected));
    }
}

// tests/grad/sharing_test.cpp: gradients that share memory within a pass, and gradients that are written part by part.
#include "../same_bits.hpp"
#include "differences.hpp"

using namespace sinter;

namespace {

using matrix = variable<double, 2>;
const auto bend = [](const matrix& x) -> matrix { return sin(x) + x * x; };

/// The gradients of f(a, b) with a, b (4,6), against differences.
template <class F>
void check(const F& f) {
  std::mt19937 gen(7);
  differences::check(f, 24, differences::random(gen, {4, 6}), differences::random(gen, {4, 6}));
}

}  // namespace

TEST_CASE("sums hand their gradient on, in whatever order it is then added to", "[sharing]") {
  check([](const matrix& a, const matrix& b) -> matrix {  // the operand gets more behind the sum, and before
    const matrix x = bend(a), h = bend(x), y = x + h;
    return y + bend(x) * b;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // a chain, and both sides of it
    matrix x = bend(a) + bend(b);
    for (int i = 0; i < 3; ++i) x = x + bend(x);
    return x - bend(a);
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // the same operand twice
    const matrix x = bend(a), y = x + x, z = y - x + bend(b);
    return z + z;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // the older operand's own backward runs last
    const matrix x = bend(a), y = bend(b), late = x * y, s = y + x;
    return s + late * s;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // leaves, and operands that are broadcast
    const matrix row = bend(b.slice(0, 1, 2)), x = bend(a) + row;
    return x + a + b - row;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // other strides
    const matrix x = bend(a), y = bend(b.transpose());
    return x + bend(y.transpose()) + x.transpose().transpose();
  });
}

TEST_CASE("views hand their gradient on, and parts are written beside each other", "[sharing]") {
  check([](const matrix& a, const matrix& b) -> matrix {  // all of it, in both orders
    const matrix x = bend(a);
    return concat(1, bend(x.slice(1, 0, 2)), x.slice(1, 2, 5) * b.slice(1, 0, 3), bend(x.slice(1, 5, 6)));
  });
  check([](const matrix& a, const matrix& b) -> matrix {
    const matrix x = bend(a), last = bend(x.slice(0, 3, 4)), first = bend(x.slice(0, 0, 3));
    return concat(0, first, last) + b;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // gaps, which are zeros, at either end and between
    const matrix x = bend(a), y = bend(b);
    return concat(0, bend(x.slice(0, 1, 2)), bend(x.slice(0, 3, 4)), y.slice(0, -3, -1));
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // parts that overlap, and parts along different axes
    const matrix x = bend(a), y = bend(b);
    return x.slice(0, 0, 3) * x.slice(0, 1, 4) +
           y.slice(1, 0, 3).slice(0, 1, 4).broadcast_to({3, 3}).flip(1).slice(1, 0, 1) * y.slice(0, 0, 3);
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // steps, flips, selected lines, and other uses beside
    const matrix x = bend(a), y = bend(b);
    const variable<double, 1> line = x.select(1, -1), other = x[2].slice(0, 0, 4), odd = y.flip(1)[0].slice(0, 0, 4);
    const matrix z = x.slice(1, 0, 6, 2) * y.slice(1, 1, 6, 2);
    const variable<double, 1> all = line.slice(0, 0, 4) * other + odd;
    return concat(1, all.unsqueeze(1), z, x) + 1.;
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // a part, and then the whole, and the other way round
    const matrix x = bend(a), y = bend(b);
    return x + bend(x.slice(0, 0, 1)).broadcast_to({4, 6}) + bend(y).slice(0, 0, 1) + y.transpose().transpose();
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // leaves: parts of them, and all of one
    return concat(0, a.slice(0, 2, 4), a.slice(0, 0, 1) * b[0].unsqueeze(0), b.transpose().transpose().slice(0, 0, 1));
  });
  check([](const matrix& a, const matrix& b) -> matrix {  // reshaped, transposed, and split as heads are
    const variable<double, 3> parts = bend(a).reshape({4, 3, 2});
    const matrix q = parts.select(1, 0), k = parts.select(1, 1), v = parts.select(1, 2);
    return concat(1, bend(q) * k, v.transpose().transpose(), bend(v)) + b;
  });
}

TEST_CASE("gradients that a user sees have memory of their own", "[sharing]") {
  const matrix a = ones<double>({2, 3}), b = ones<double>({2, 3});
  const matrix x = a * 2., y = b * 3., s = x + y, t = s.transpose().transpose();
  for (const auto& v : {x, y, s, t}) v.retain_grad();
  const auto seed = full<double>({2, 3}, 5.);
  t.backward(seed);
  const auto before = a.grad().clone();
  const std::vector<matrix> all{x, y, s, t};
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(same_bits(all[i].grad(), seed));
    all[i].grad().in_place() = static_cast<double>(i);  // nobody else's changes
    for (std::size_t j = 0; j < i; ++j) CHECK(all[j].grad()(1, 1) == static_cast<double>(j));
  }
  CHECK(same_bits(a.grad(), before));
  CHECK(same_bits(seed, full<double>({2, 3}, 5.)));

  // A seed that is handed on is not written to.
  const matrix p = a * 1., q = p + bend(p);
  q.backward(seed);
  CHECK(same_bits(seed, full<double>({2, 3}, 5.)));
  // A graph that is kept gives the same again.
  a.zero_grad();
  const matrix o = a * 1., r = o + bend(o).slice(0, 0, 2), w = concat(0, r.slice(0, 1, 2), r.slice(0, 0, 1));
  w.backward(seed, {.retain_graph = true});
  const auto once = a.grad().clone();
  w.backward(seed);
  CHECK(same_bits(a.grad(), eval(once * 2.)));
}

TEST_CASE("a listener is told of a leaf of which parts were used", "[sharing]") {
  const matrix a = ones<double>({4, 2});
  gradient_listener listener;
  tensor<double, 2> told;
  listener.add(a, [&] { told = a.grad().clone(); });
  const variable loss = sum(a.slice(0, 1, 3) * 2.);
  loss.backward(listener);
  CHECK(same_bits(told, tensor<double, 2>{{0, 0}, {2, 2}, {2, 2}, {0, 0}}));
}

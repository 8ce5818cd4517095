// tests/cuda/map_test.cpp: elementwise statements and their gradients on simulated GPUs, against the CPU.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;
using g1 = cuda<1>;

TEST_CASE("a fused statement is one launch, whatever its length", "[cuda]") {
  for (const index_t n : {0, 1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024, 1025, 4099, 262147}) {
    const auto a = numbers({n}, 1), b = numbers({n}, 2), c = numbers({n}, 3);
    const auto da = a.to<g0>(), db = b.to<g0>(), dc = c.to<g0>();
    const auto before = launches<g0>();
    const tensor y = sigmoid(da * db + dc) * tanh(db);
    CHECK(launches<g0>() - before == (n > 0 ? 1 : 0));
    CHECK(distance(y, tensor(sigmoid(a * b + c) * tanh(b))) < 1e-6);
  }
}

TEST_CASE("strided, broadcast, flipped and shifted operands", "[cuda]") {
  const auto a = numbers({6, 10, 12}, 1), b = numbers({6, 10, 12}, 2);
  const auto row = numbers({12}, 3);
  const auto column = numbers({10, 1}, 4);
  CHECK(compare::values([](const auto& x, const auto& y) { return x + y * 2; }, a, b) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& r) { return x * r; }, a, row) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& c) { return x - c; }, a, column) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& y) { return x.transpose(0, 2) + y.permute({2, 1, 0}); }, a, b) <=
        compare::rounding);
  CHECK(compare::values([](const auto& x) { return x.flip(2) + x; }, a) <= compare::rounding);
  CHECK(compare::values([](const auto& x) { return x.slice(2, 1, 11, 3) * 2; }, a) <= compare::rounding);
  CHECK(compare::values([](const auto& x) { return x.slice(2, 1, 11) + x.slice(2, 2, 12); }, a) <= compare::rounding);
  CHECK(compare::values([](const auto& x, const auto& r) { return x.select(0, 2) + r; }, a, row) <= compare::rounding);
  CHECK(compare::values([](const auto& r, const auto& c) { return r * c; }, row, column) <= compare::rounding);
  for (const index_t n : {1, 2, 3, 4, 5, 7, 8, 33, 130})
    CHECK(compare::values([](const auto& x, const auto& r, const auto& c) { return x * r + c; }, numbers({17, n}, 5),
                          numbers({n}, 6), numbers({17, 1}, 7)) < 1e-6);
}

TEST_CASE("element types side by side in one pass", "[cuda]") {
  const auto x = numbers({513}, 1);
  const auto d = numbers<double>({513}, 2);
  const auto i = numbers<std::int32_t>({513}, 3);
  const auto u = eval(cast<std::uint8_t>(abs(x) * 40));
  CHECK(compare::values([](const auto& a, const auto& b) { return where(a > 0, cast<double>(a), b); }, x, d) <=
        compare::rounding);
  CHECK(compare::values([](const auto& a, const auto& b) { return cast<float>(a) / 7 + b; }, i, x) < 1e-6);
  CHECK(compare::values([](const auto& a) { return (a & 15) + (a >> 2); }, i) <= compare::rounding);
  CHECK(compare::values([](const auto& a) { return cast<float>(a) / 255; }, u) <= compare::rounding);
  CHECK(compare::values([](const auto& a) { return (a << 3) + (a >> 5); }, u) == 0);
  CHECK(compare::values([](const auto& a, const auto& b) { return (a > 1) && (b < 0); }, x, d) <= compare::rounding);
}

TEST_CASE("let, fuse and writes through views", "[cuda]") {
  const auto a = numbers({7, 33}, 1), b = numbers({7, 33}, 2);
  CHECK(compare::values(
            [](const auto& x, const auto& y) { return let(exp(x * y), [](auto e) { return e / (1 + e); }); }, a, b) <
        1e-6);
  auto x = a.clone(), y = b.clone();
  auto dx = a.to<g0>(), dy = b.to<g0>();
  fuse(x.in_place() += y, y.in_place() -= x);
  const auto before = launches<g0>();
  fuse(dx.in_place() += dy, dy.in_place() -= dx);
  CHECK(launches<g0>() - before == 1);
  CHECK(distance(dx, x) <= compare::rounding);
  CHECK(distance(dy, y) <= compare::rounding);
  x.slice(1, 1, 30).flip(0) = y.slice(1, 2, 31) * 2;
  dx.slice(1, 1, 30).flip(0) = dy.slice(1, 2, 31) * 2;
  x.transpose() += 1;
  dx.transpose() += 1;
  CHECK(distance(dx, x) <= compare::rounding);
}

TEMPLATE_TEST_CASE("what lies behind an aligned view stays as it is", "[cuda]", float, double, sinter::half,
                   std::int32_t) {
  for (const index_t n : {1, 2, 3, 5, 7, 8, 9, 15, 30}) {
    const auto a = numbers<TestType>({7, n}, 1);
    const auto da = a.template to<g0>();
    auto x = numbers<TestType>({7, 40}, 2);
    auto dx = x.template to<g0>();
    x.slice(1, 0, n) = a + a;  // whole chunks but for the last one
    dx.slice(1, 0, n) = da + da;
    x.slice(1, 8, 8 + n) -= a;
    dx.slice(1, 8, 8 + n) -= da;
    x.select(0, 3).slice(0, 0, n) = a.select(0, 2) + a.select(0, 1);
    dx.select(0, 3).slice(0, 0, n) = da.select(0, 2) + da.select(0, 1);
    CHECK(distance(dx, x) == 0);
  }
}

TEST_CASE("gradients of operands of every shape", "[cuda]") {
  const auto a = numbers({9, 5, 21}, 1), b = numbers({9, 5, 21}, 2);
  const auto row = numbers({21}, 3);
  const auto matrix = numbers({5, 1}, 4);
  const auto scalar = numbers(extents<0>{}, 5);
  CHECK(compare::gradients([](const auto& x, const auto& y) { return eval(sigmoid(x * y + x) * tanh(y)); }, a, b) <
        1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& r) { return eval(x * r); }, a, row) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& m) { return eval(exp(x * m * 0.1)); }, a, matrix) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& s) { return eval(tanh(x) * s + s); }, a, scalar) < 1e-5);
  CHECK(compare::gradients([](const auto& r, const auto& m) { return eval(r * m); }, row, matrix) < 1e-5);
  CHECK(compare::gradients([](const auto& x) { return eval(x.transpose(0, 2) * x.permute({2, 1, 0})); }, a) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& r) { return eval(x.slice(2, 3, 10) * r.slice(0, 1, 8)); }, a,
                           row) < 1e-5);
  CHECK(compare::gradients([](const auto& x, const auto& r) { return eval(x * r); }, numbers({0, 21}), row) == 0);
  CHECK(compare::gradients([](const auto& x, const auto& s) { return eval(x * s); }, numbers({300, 700}), scalar) <
        1e-4);
}

TEST_CASE("backward without broadcast leaves is one launch", "[cuda]") {
  const variable a = numbers({1000}).to<g0>(), b = numbers({1000}, 2).to<g0>();
  const variable y = sigmoid(a * b) * tanh(b);
  const auto seed = ones_like(y.value());
  const auto before = launches<g0>();
  y.backward(seed);
  CHECK(launches<g0>() - before == 1);
}

TEST_CASE("gradients of broadcast leaves are added up in the same launch", "[cuda]") {
  const auto launches_of = [](const auto& y) {
    const auto seed = ones_like(y.value());
    const auto before = launches<g0>();
    y.backward(seed);
    return launches<g0>() - before;
  };
  const auto f = [](const auto& x, const auto& r, const auto& s) { return eval(tanh(x * r) * s + r); };
  for (const index_t m : {1, 2, 33, 700})
    for (const index_t n : {1, 3, 4, 129, 1030}) {
      const auto x = numbers({m, n}, 1);
      const auto row = numbers({n}, 2);
      const auto scalar = numbers(extents<0>{}, 3);
      CHECK(compare::gradients(f, x, row, scalar) < 1e-4);
      CHECK(launches_of(f(variable(x.to<g0>()), variable(row.to<g0>()), variable(scalar.to<g0>()))) == 1);
    }
  // sums of rows, beside one of everything, and what is cut in pieces both ways
  const auto g = [](const auto& x, const auto& c, const auto& s) { return eval(x * c + s); };
  for (const index_t n : {1, 5, 130, 3000}) {
    const auto x = numbers({70, n}, 4);
    const auto column = numbers({70, 1}, 5);
    const auto scalar = numbers(extents<0>{}, 6);
    CHECK(compare::gradients(g, x, column, scalar) < 1e-4);
    CHECK(launches_of(g(variable(x.to<g0>()), variable(column.to<g0>()), variable(scalar.to<g0>()))) == 1);
  }
  const auto x = numbers<double>({6, 50, 7}, 7);
  CHECK(compare::gradients([](const auto& v, const auto& matrix) { return eval(v * matrix); }, x,
                           numbers<double>({50, 7}, 8)) < 1e-12);
  CHECK(compare::gradients([](const auto& v, const auto& lines) { return eval(v * lines); }, x,
                           numbers<double>({50, 1}, 9)) < 1e-12);
  CHECK(compare::gradients([](const auto& v, const auto& r) { return eval(v.transpose(0, 1) * r); }, x,
                           numbers<double>({7}, 10)) < 1e-12);
  CHECK(compare::gradients([](const auto& v, const auto& s) { return eval(v * s); }, numbers({300000}, 11),
                           numbers(extents<0>{}, 12)) < 1e-4);
  // every axis repeated or not, over few and many rows, short and long ones, beside a leaf that is not
  const auto each = [](const auto& v, const auto& r) { return eval(v * r + v); };
  for (const extents<3>& shape : {extents<3>{3, 2, 5}, extents<3>{2, 37, 70}, extents<3>{70, 3, 4},
                                  extents<3>{1, 40, 9}, extents<3>{2, 3, 2500}, extents<3>{600, 2, 9}})
    for (int repeated = 0; repeated < 8; ++repeated) {
      extents<3> of_leaf = shape;
      for (int d = 0; d < 3; ++d)
        if (repeated >> d & 1) of_leaf[d] = 1;
      const auto v = numbers<double>(shape, 15), r = numbers<double>(of_leaf, 16);
      CAPTURE(shape[0], shape[1], shape[2], repeated);
      CHECK(compare::gradients(each, v, r) < 1e-11);
      CHECK(launches_of(each(variable(v.to<g0>()), variable(r.to<g0>()))) == 1);
    }
  // a gain, a shift and what belongs to each row, as in a normalisation written by hand; sums of two groups of rows
  const auto normalised = [](const auto& v, const auto& m, const auto& scale, const auto& gain) {
    return eval((v - m) * scale * gain);
  };
  for (const index_t n : {7, 300, 1024}) {
    const auto v = numbers<double>({90, n}, 17), m = numbers<double>({90, 1}, 18),
               inverse = numbers<double>({90, 1}, 19);
    const auto gain = numbers<double>({1, n}, 20);
    CHECK(compare::gradients(normalised, v, m, inverse, gain) < 1e-11);
    CHECK(launches_of(normalised(variable(v.to<g0>()), variable(m.to<g0>()), variable(inverse.to<g0>()),
                                 variable(gain.to<g0>()))) == 1);
  }
  for (const index_t n : {6, 5000})
    CHECK(compare::gradients(normalised, numbers<double>({4, 5, n}, 21), numbers<double>({4, 1, 1}, 22),
                             numbers<double>({1, 5, 1}, 23), numbers<double>({1, 1, n}, 24)) < 1e-11);
  const auto channels = [](const auto& v, const auto& scale, const auto& shift) { return eval(v * scale + shift); };
  const auto images = numbers({6, 3, 8, 9}, 25), scale = numbers({1, 3, 1, 1}, 26), shift = numbers({1, 3, 1, 1}, 27);
  CHECK(compare::gradients(channels, images, scale, shift) < 1e-4);
  CHECK(launches_of(channels(variable(images.to<g0>()), variable(scale.to<g0>()), variable(shift.to<g0>()))) == 1);
  // more sums than a block has memory for
  const auto many = [](const auto& v, const auto& a, const auto& b, const auto& c, const auto& d, const auto& e,
                       const auto& h, const auto& i) { return eval((v * a + b) * c + d * e + h * i); };
  const auto of_row = [](int seed) { return numbers<double>({9}, seed); };
  const auto tall = numbers<double>({40, 9}, 30);
  CHECK(compare::gradients(many, tall, of_row(31), of_row(32), of_row(33), of_row(34), of_row(35), of_row(36),
                           of_row(37)) < 1e-11);
  const auto tracked = [&](int seed) { return variable(of_row(seed).to<g0>()); };
  CHECK(launches_of(many(variable(tall.to<g0>()), tracked(31), tracked(32), tracked(33), tracked(34), tracked(35),
                         tracked(36), tracked(37))) > 1);
  // leaves of two types: what belongs to the double one never is a float
  const auto mixed = [](const auto& v, const auto& big) { return eval(v + cast<float>(big * 1e100)); };
  CHECK(compare::gradients(mixed, numbers({7}, 28), numbers<double>({1}, 29)) == 0);
  CHECK(compare::gradients(mixed, numbers({7, 3}, 28), numbers<double>({3}, 29)) < 1e-14);
  // masks follow the elements, not the order in which they are visited
  const auto masked = [](const auto& v, const auto& s) {
    generator gen(3);
    return eval(dropout(v * s, 0.5, gen));
  };
  CHECK(compare::gradients(masked, images, scale) < 1e-4);
  CHECK(compare::gradients(channels, numbers({0, 3, 8, 9}), scale, shift) == 0);
  CHECK(compare::gradients(channels, numbers({6, 3, 0, 9}), scale, shift) == 0);
  const variable wide = numbers({40000, 9}, 13).to<g0>();
  const auto twice = [&] {
    const variable bias = numbers({9}, 14).to<g0>();
    const variable y = wide * bias;
    y.backward(ones_like(y.value()));
    return bias.grad().to<cpu>();
  };
  CHECK(distance(twice(), twice()) == 0);
}

TEST_CASE("two GPUs and the CPU pass values and gradients on", "[cuda]") {
  const auto x = numbers({5, 8}, 1), w = numbers({8, 8}, 2);
  const auto loss = [](const auto& v, const auto& u) { return sum(tanh(matmul(v, u))); };
  const variable host_x = x.clone(), host_w = w.clone();
  const variable expected = loss(host_x, host_w);
  expected.backward();
  const variable start = x.clone();
  const variable on_0 = start.to<g0>();
  const variable weight = w.to<g1>();
  const variable middle = on_0 * 1;
  const variable on_1 = middle.to<g1>();
  const variable total = loss(on_1, weight);
  total.backward();
  CHECK(total.item() == Approx(expected.item()).epsilon(1e-5));
  CHECK(distance(start.grad(), host_x.grad()) < 1e-5);
  CHECK(distance(weight.grad(), host_w.grad()) < 1e-5);
}

TEST_CASE("division by a constant is exact below 2^31", "[cuda]") {
  for (const std::uint32_t d :
       {1u, 2u, 3u, 5u, 7u, 10u, 31u, 641u, 65535u, 65536u, 65537u, 1000003u, 0x7ffffffeu, 0x7fffffffu}) {
    const cuda_impl::divider by(d);
    for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{d}, std::uint64_t{d} * 2, std::uint64_t{d} * 1000,
                                     std::uint64_t{1} << 30, (std::uint64_t{1} << 31) - 3})
      for (std::uint64_t n = base < 3 ? 0 : base - 3; n < base + 3 && n < (std::uint64_t{1} << 31); ++n)
        REQUIRE(by(static_cast<std::uint32_t>(n)) == n / d);
  }
}

TEST_CASE("spaces beyond 2^31 elements keep their addresses", "[cuda]") {
  // By index arithmetic alone: no such memory is touched.
  const index_t shape[] = {3, index_t{1} << 33, 5};
  cuda_impl::pass_axes axes(shape, 3, 1);
  axes.data[0] = nullptr;
  axes.strides[0][0] = index_t{1} << 40;
  axes.strides[0][1] = 7;
  axes.strides[0][2] = 1;
  axes.coalesce();
  const cuda_impl::index_space space = axes.space<2>();
  CHECK_FALSE(space.narrow);
  const auto table = axes.table<1, 2>(0);
  for (const index_t row : {index_t{0}, (index_t{1} << 33) - 1, index_t{1} << 33, 3 * (index_t{1} << 33) - 1}) {
    index_t at[1] = {0};
    cuda_impl::add_row(space, table, row, at);
    CHECK(at[0] == row / shape[1] * (index_t{1} << 40) + row % shape[1] * 7);
  }
}

TEST_CASE("sums and views hand their gradient on on a GPU", "[cuda]") {
  const auto f = [](const auto& a, const auto& b) {
    using V = variable<float, 2, device_of<decltype(a)>>;
    const V x = sin(a), y = x + a, z = y + b[0], w = z - sin(z) + b, parts = w * x;
    const V third = sin(parts.slice(1, 4, 6));
    return eval(parts.slice(1, 0, 2).transpose() * parts.slice(1, 2, 4).transpose() + third.transpose());
  };
  CHECK(compare::gradients(f, compare::numbers({4, 6}), compare::numbers({4, 6})) < 1e-5);
}

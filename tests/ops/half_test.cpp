// tests/ops/half_test.cpp: tensors of half and bfloat16: computed in float, rounded once per statement.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>

#include "../same_bits.hpp"

using namespace sinter;

namespace {

template <class T>
tensor<T, 2> numbers(int seed, index_t rows = 7, index_t columns = 45) {
  generator gen(static_cast<std::uint64_t>(seed));
  return randn<T>(gen, {rows, columns});
}

/// Largest difference, in units of the last place of T at 1.
template <class T, auto S, class U>
double places(const tensor<T, S>& got, const tensor<U, S>& expected) {
  const tensor<double, S> x = cast<double>(got), y = cast<double>(expected);
  return eval(max(abs(x - y) / (1 + abs(y)))).item() /
         static_cast<double>(static_cast<float>(std::numeric_limits<T>::epsilon()));
}

/// f on T is f on float, rounded once.
template <class T, class F>
bool rounds_once(const F& f, const tensor<T, 2>& a, const tensor<T, 2>& b) {
  const tensor<float, 2> x = cast<float>(a), y = cast<float>(b);
  return same_bits<T>(eval(f(a, b)), eval(cast<T>(eval(f(x, y)))));
}

void check_statements() {
  using T = half;
  const tensor a = numbers<T>(1), b = numbers<T>(2);
  CHECK(rounds_once<T>([](const auto& x, const auto& y) { return x * y + x * 0.1f - 3; }, a, b));
  CHECK(rounds_once<T>([](const auto& x, const auto& y) { return gelu(x) / (abs(y) + 1e-8); }, a, b));
  CHECK(rounds_once<T>([](const auto& x, const auto& y) { return where(x < y, elu(x, 0.3), minimum(x, y)); }, a, b));
  CHECK(rounds_once<T>([](const auto& x, const auto& y) { return let(exp(x), [&](auto t) { return t * t + t * y; }); },
                       a, b));
  CHECK(same_bits<T>(eval(a.transpose() * 0.7f), eval(a * 0.7f).transpose()));
  CHECK(same_bits<T>(eval(a.slice(1, 1, 40, 3) + b.slice(1, 0, 39, 3)),
                     eval(cast<T>(cast<float>(a.slice(1, 1, 40, 3)) + cast<float>(b.slice(1, 0, 39, 3))))));
  CHECK(same_bits<bool>(eval(a > 0.5f), eval(cast<float>(a) > 0.5f)));
  CHECK(same_bits<std::int32_t>(eval(cast<std::int32_t>(a * 100)), eval(cast<std::int32_t>(cast<float>(a) * 100))));
  tensor<T, 2> m = a.clone(), v = b.clone();
  const tensor<T, 2> next = eval(m * 0.9f + v);
  fuse(m = 0.9f * m + v, v -= 0.1f * a);
  CHECK(same_bits<T>(m, next));
  m += v;
  CHECK(same_bits<T>(m, eval(next + v)));
}

void check_gradients() {
  using T = bfloat16;
  const auto f = [](const auto& x, const auto& y, const auto& row) {
    return eval(sum(cast<float>(tanh(x * y + row) * x)));
  };
  const tensor x = numbers<T>(1, 300, 70), y = numbers<T>(2, 300, 70);
  const tensor<T, 1> row = numbers<T>(3, 300, 70)[0];
  const variable a = x, b = y;
  const variable c = row.clone();
  const variable<float, 2> fa = cast<float>(x), fb = cast<float>(y);
  const variable<float, 1> fc = cast<float>(row);
  for (int pass = 0; pass < 2; ++pass) {
    f(a, b, c).backward();
    f(fa, fb, fc).backward();
  }
  CHECK(places(a.grad(), fa.grad()) < 1.01);
  CHECK(places(b.grad(), fb.grad()) < 1.01);
  CHECK(places(c.grad(), fc.grad()) < 1.01);
  const variable one = x;  // the same leaf twice
  variable(one.transpose() * 2 + one.transpose() * one.transpose()).backward(ones<T>({70, 300}));
  CHECK(places(one.grad(), eval(cast<float>(x) * 2 + 2)) < 1.01);
}

}  // namespace

TEST_CASE("a statement over half or bfloat16 rounds once, at its end") {
  check_statements();
  const auto f = [](const auto& x, const auto& y) { return x * y + x * 0.1f - 3; };
  CHECK(rounds_once<bfloat16>(f, numbers<bfloat16>(1), numbers<bfloat16>(2)));
}

TEST_CASE("a cast to half rounds within a statement, as a narrower element would be") {
  const tensor<float, 1> x = {1.00001f, 70000, 1e-9f};
  const tensor<float, 1> y = cast<float>(cast<half>(x));
  CHECK(y(0) == 1);
  CHECK(std::isinf(y(1)));
  CHECK(y(2) == 0);
  CHECK(eval(cast<half>(tensor<double, 1>{0.1}))(0).bits() == 0x2e66);
  CHECK(eval(cast<bfloat16>(tensor<std::int64_t, 1>{257}))(0) == 256);
}

TEST_CASE("gradients of half and bfloat16 are those of float, rounded, also where a leaf was broadcast") {
  check_gradients();
  const variable scalar = zeros<half>();
  variable(sum(cast<float>(ones<half>({100000}) * scalar))).backward();
  CHECK(std::isinf(scalar.grad().item()));  // 100000 is more than half holds
  const variable small = zeros<half>();
  variable(sum(cast<float>(full<half>({100000}, 0.1f) * small))).backward();
  CHECK(small.grad().item() == Approx(9997.6).epsilon(0.001));
}

TEST_CASE("sums of 1e5 elements of half are right") {
  const tensor x = full<half>({100000}, 0.1f);
  CHECK(eval(sum(x)).item() == Approx(9997.6).epsilon(0.001));
  CHECK(eval(mean(ones<half>({100000}) * 40)).item() == 40);
  CHECK(eval(var(x)).item() == 0);
  CHECK(eval(norm(ones<half>({90000}))).item() == 300);
  CHECK(eval(logsumexp(zeros<bfloat16>({100000}))).item() == Approx(std::log(1e5)).epsilon(0.004));
  CHECK(eval(sum(ones<bfloat16>({100000}))).item() == bfloat16(100000));
  CHECK(same_bits<half>(eval(sum(full<half>({1000, 3}, 0.25f), 0)), full<half>({3}, 250)));
  CHECK(same_bits<half>(eval(max(full<half>({3, 9}, 0.25f), 1)), full<half>({3}, 0.25f)));
  tensor<half, 1> peak = x.clone();
  peak(70001) = 3;
  CHECK(eval(argmax(peak)).item() == 70001);
  CHECK(eval(all(peak > 0)).item());
  const variable v = x;
  variable(mean(v * v)).backward();
  CHECK(v.grad()(17) == half(2 * static_cast<float>(half(0.1f)) / 100000));
  const variable w = peak;
  variable(max(w)).backward();
  CHECK(w.grad()(70001) == 1);
  CHECK(w.grad()(70000) == 0);
}

TEST_CASE("row-wise ops of half and bfloat16 are those of float, rounded") {
  const tensor h = numbers<half>(4, 5, 101);
  const tensor<float, 2> x = cast<float>(h);
  CHECK(places(eval(softmax(h * 3, 1)), eval(softmax(x * 3, 1))) < 1);
  CHECK(places(eval(log_softmax(h, 1)), eval(log_softmax(x, 1))) < 1);
  CHECK(places(eval(layer_norm(h)), eval(layer_norm(x))) < 1);
  for (int axis = 0; axis < 2; ++axis) CHECK(places(eval(softmax(h, axis) + 1), eval(softmax(x, axis) + 1)) < 1.5);
  const tensor b = numbers<bfloat16>(5, 5, 101);
  const tensor<std::int64_t, 1> labels = {0, 100, 7, 50, 3};
  const variable v = b;
  const variable<float, 2> w = cast<float>(b);
  const variable loss = cross_entropy(v * 2, labels);
  const variable expected = cross_entropy(w * 2, labels);
  CHECK(static_cast<double>(loss.item()) == Approx(expected.item()).epsilon(0.008));
  loss.backward();
  expected.backward();
  CHECK(places(v.grad(), w.grad()) < 1);
  const variable a = b;
  variable(sum(rms_norm(a) * b)).backward();
  const variable<float, 2> c = cast<float>(b);
  variable(sum(rms_norm(c) * cast<float>(b))).backward();
  CHECK(places(a.grad(), c.grad()) < 2);
}

TEST_CASE("tensors of half and bfloat16 are made, joined, picked from and shown") {
  generator gen(1);
  const tensor<half, 2> x = {{1, 2.5f}, {-3, 65504}};
  CHECK(to_string(x) == "[[       1,      2.5],\n [      -3, 6.55e+04]] half (2, 2) cpu");
  CHECK(arange<bfloat16>(0, 2, 0.5f)(3) == 1.5f);
  CHECK(eye<half>(3)(1, 1) == 1);
  const tensor u = rand<half>(gen, {100000});
  CHECK(eval(max(u)).item() == 1 - 0x1p-11f);
  CHECK(eval(mean(u)).item() == Approx(0.5).epsilon(0.01));
  CHECK(eval(var(randn<bfloat16>(gen, {100000}))).item() == Approx(1).epsilon(0.02));
  CHECK(same_bits<half>(concat(0, x, x).slice(0, 2, 4), x));
  CHECK(same_bits<half>(stack(1, x, x).select(1, 1), x));
  CHECK(same_bits<half>(x.to<numa<0>>().to<cpu>(), x));
  CHECK(eval(mean(dropout(ones<half>({10000}), 0.25, gen))).item() == Approx(1).epsilon(0.05));
  const variable table = zeros<half>({2, 3});
  const tensor<std::int64_t, 1> index = eval(zeros<std::int64_t>({3000}) + 1);
  variable(sum(cast<float>(index_select(table, 0, index)))).backward();
  CHECK(table.grad()(1, 2) == 3000);  // added one by one in half the sum would stay at 2048
  const tensor product = prod(tensor<bfloat16, 1>{2, 3, 0.5f});
  CHECK(product.item() == 3);
}

TEST_CASE("products of half and bfloat16 are those of float, rounded") {
  const auto check = [](const auto& a, const auto& b) {
    const tensor x = cast<float>(a), y = cast<float>(b);
    CHECK(places(eval(matmul(a, b)), eval(matmul(x, y))) < 0.6);
  };
  const tensor a = numbers<half>(1, 65, 130), b = numbers<half>(2, 130, 37);
  check(a, b);
  check(b.transpose(), a.transpose());
  check(a.slice(0, 2, 60, 3), b.slice(1, 1, 36, 2));
  check(a.slice(1, 0, 130, 2), b.slice(0, 0, 130, 2));
  check(a.slice(0, 0, 1), b.slice(1, 0, 1));
  check(a.slice(1, 0, 0), b.slice(0, 0, 0));
  const tensor c = numbers<bfloat16>(3, 12, 20).reshape({3, 4, 20}),
               d = numbers<bfloat16>(4, 60, 5).reshape({3, 20, 5});
  CHECK(places(eval(matmul(c, d)), eval(matmul(cast<float>(c), cast<float>(d)))) < 0.6);
  const variable w = b;
  const variable<float, 2> v = cast<float>(b);
  for (int pass = 0; pass < 2; ++pass) {
    variable(sum(relu(matmul(a, w) + 1))).backward();
    variable(sum(relu(matmul(cast<float>(a), v) + 1))).backward();
  }
  CHECK(places(w.grad(), v.grad()) < 2);
}

TEST_CASE("second derivatives of half") {
  const variable<half, 1, cpu, 2> x = tensor<half, 1>{1, 2};
  const variable y = sum(x * x * x);
  const variable slope = grad(y, x);
  variable(sum(slope)).backward();
  CHECK(slope.value()(1) == 12);
  CHECK(x.grad()(1) == 12);
}

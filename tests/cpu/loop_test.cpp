// tests/cpu/loop_test.cpp: run_loop driven directly: coalescing, rows, staging, partial sums, threads.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <random>
#include <vector>

using namespace sinter::cpu_impl;
using sinter::index_t;
using operand = sinter::cpu_impl::operand;

namespace {

void put(const kernel_args& a, int s, index_t i, double v) {
  double& e = static_cast<double*>(a.out[s])[a.out_mask[s] == 0 ? i % lanes : i];
  e = a.out_add[s] ? e + v : v;
}

/// out[0] = in[0] + in[1], and with two outputs out[1] = in[0].
template <int Outputs>
void add_kernel(const void*, const kernel_args& a) {
  const auto* x = static_cast<const double*>(a.in[0]);
  const auto* y = static_cast<const double*>(a.in[1]);
  for (index_t i = 0; i < a.n; ++i) {
    put(a, 0, i, x[i & a.in_mask[0]] + y[i & a.in_mask[1]]);
    if (Outputs == 2) put(a, 1, i, x[i & a.in_mask[0]]);
  }
}

struct setup {
  operand in[2];
  operand out[2];
};

operand of(double* data, std::initializer_list<index_t> strides, bool add = false) {
  operand o;
  o.data = reinterpret_cast<char*>(data);
  o.size = sizeof(double);
  o.add = add;
  int d = 0;
  for (index_t s : strides) o.strides[d++] = s;
  return o;
}

loop make(setup& s, std::initializer_list<index_t> shape, int outputs) {
  loop l;
  l.rank = 0;
  for (index_t e : shape) l.shape[l.rank++] = e;
  l.inputs = 2;
  l.outputs = outputs;
  l.in = s.in;
  l.out = s.out;
  l.fn = outputs == 2 ? &add_kernel<2> : &add_kernel<1>;
  return l;
}

std::vector<double> counting(index_t n) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i % 251);
  return v;
}

}  // namespace

TEST_CASE("axes that every operand walks as one are merged, extents of one vanish", "[loop]") {
  double x = 0;
  setup s;
  s.in[0] = of(&x, {12, 5, 4, 1});
  s.in[1] = of(&x, {12, 9, 4, 1});
  s.out[0] = of(&x, {12, 7, 4, 1});
  loop l = make(s, {2, 1, 3, 4}, 1);
  coalesce(l);
  CHECK(l.rank == 1);
  CHECK(l.shape[0] == 24);
  CHECK(s.in[0].strides[0] == 1);

  s.in[0] = of(&x, {4, 1, 0});
  s.in[1] = of(&x, {20, 5, 1});
  s.out[0] = of(&x, {20, 5, 1});
  l = make(s, {3, 4, 5}, 1);
  coalesce(l);
  CHECK(l.rank == 2);
  CHECK(l.shape[0] == 12);
  CHECK(l.shape[1] == 5);
  CHECK(s.in[0].strides[0] == 1);
  CHECK(s.in[0].strides[1] == 0);

  s.in[0] = of(&x, {0, 0});
  s.in[1] = of(&x, {0, 0});
  s.out[0] = of(&x, {7, 1});
  l = make(s, {3, 7}, 1);
  coalesce(l);
  CHECK(l.rank == 1);
  CHECK(s.in[0].strides[0] == 0);

  l = make(s, {1, 1}, 1);
  coalesce(l);
  CHECK(l.rank == 0);
  CHECK(l.numel() == 1);
}

TEST_CASE("long dense rows run in place, short or strided ones are staged", "[loop]") {
  double x = 0;
  setup s;
  const auto by_rows = [&](std::initializer_list<index_t> shape, std::initializer_list<index_t> a,
                           std::initializer_list<index_t> b, std::initializer_list<index_t> y) {
    s.in[0] = of(&x, a);
    s.in[1] = of(&x, b);
    s.out[0] = of(&x, y);
    return prepared_loop(make(s, shape, 1)).by_rows();
  };
  CHECK(by_rows({5, 100}, {200, 1}, {0, 1}, {100, 1}));
  CHECK(by_rows({5, 100}, {1, 0}, {0, 0}, {100, 1}));
  CHECK_FALSE(by_rows({5, 10}, {20, 1}, {0, 1}, {10, 1}));
  CHECK_FALSE(by_rows({5, 100}, {200, 2}, {0, 1}, {100, 1}));
  CHECK_FALSE(by_rows({100}, {-1}, {1}, {1}));
  CHECK_FALSE(by_rows({100}, {1}, {1}, {2}));
  CHECK(by_rows({10}, {1}, {0}, {1}));
  CHECK(by_rows({}, {}, {}, {}));
}

TEST_CASE("broadcast, reversed and strided operands reach their elements at any shape", "[loop]") {
  std::mt19937 gen(1);
  thread_pool pool(2);
  for (int trial = 0; trial < 60; ++trial) {
    const index_t a = 1 + static_cast<index_t>(gen() % 40), b = 1 + static_cast<index_t>(gen() % 5),
                  c = 1 + static_cast<index_t>(gen() % 150);
    auto x = counting(a * b * c * 2 + 1), y = counting(a * c + 1);
    std::vector<double> z(static_cast<std::size_t>(a * b * c * 2), -1);
    const index_t step = 1 + static_cast<index_t>(gen() % 2), out_step = 1 + static_cast<index_t>(gen() % 2);
    setup s;
    s.in[0] = of(x.data() + (a - 1) * b * c * step, {-b * c * step, c * step, step});
    s.in[1] = of(y.data(), {c, 0, trial % 3 == 0 ? 0 : 1});
    s.out[0] = of(z.data(), {c * out_step, a * c * out_step, out_step});
    run_loop(make(s, {a, b, c}, 1), pool);
    for (index_t i = 0; i < a; ++i)
      for (index_t j = 0; j < b; ++j)
        for (index_t k = 0; k < c; ++k) {
          const double expected = x[static_cast<std::size_t>(((a - 1 - i) * b * c + j * c + k) * step)] +
                                  y[static_cast<std::size_t>(i * c + (trial % 3 == 0 ? 0 : k))];
          REQUIRE(z[static_cast<std::size_t>((j * a * c + i * c + k) * out_step)] == expected);
        }
  }
}

TEST_CASE("outputs of stride 0 sum over that axis, alone and on top of what is there", "[loop]") {
  for (int threads = 1; threads <= 3; ++threads) {
    thread_pool pool(threads);
    for (const auto& [rows, columns] :
         {std::pair<index_t, index_t>{3, 5}, {7, 100}, {1, 1}, {2000, 3}, {3, 70000}, {700, 300}, {300000, 1}})
      for (const bool add : {false, true})
        for (int sum_over = 0; sum_over < 3; ++sum_over) {  // rows, columns, both
          auto x = counting(rows * columns);
          auto y = counting(1);
          const index_t n = sum_over == 0 ? columns : sum_over == 1 ? rows : 1;
          std::vector<double> z(static_cast<std::size_t>(n), 0.5);
          setup s;
          s.in[0] = of(x.data(), {columns, 1});
          s.in[1] = of(y.data(), {0, 0});
          s.out[0] =
              of(z.data(), {sum_over == 1 ? index_t{1} : index_t{0}, sum_over == 0 ? index_t{1} : index_t{0}}, add);
          run_loop(make(s, {rows, columns}, 1), pool);
          std::vector<double> expected(static_cast<std::size_t>(n), add ? 0.5 : 0);
          for (index_t i = 0; i < rows; ++i)
            for (index_t j = 0; j < columns; ++j)
              expected[static_cast<std::size_t>(sum_over == 0   ? j
                                                : sum_over == 1 ? i
                                                                : 0)] += x[static_cast<std::size_t>(i * columns + j)];
          REQUIRE(z == expected);
        }
  }
}

TEST_CASE("a dense output and a sum leave in one pass", "[loop]") {
  thread_pool pool(2);
  const index_t rows = 900, columns = 130;
  auto x = counting(rows * columns), y = counting(columns);
  std::vector<double> z(x.size(), -1), sums(static_cast<std::size_t>(columns), -1);
  setup s;
  s.in[0] = of(x.data(), {columns, 1});
  s.in[1] = of(y.data(), {0, 1});
  s.out[0] = of(z.data(), {columns, 1});
  s.out[1] = of(sums.data(), {0, 1});
  run_loop(make(s, {rows, columns}, 2), pool);
  for (index_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (index_t i = 0; i < rows; ++i) {
      sum += x[static_cast<std::size_t>(i * columns + j)];
      REQUIRE(z[static_cast<std::size_t>(i * columns + j)] ==
              x[static_cast<std::size_t>(i * columns + j)] + y[static_cast<std::size_t>(j)]);
    }
    REQUIRE(sums[static_cast<std::size_t>(j)] == sum);
  }
}

TEST_CASE("short rows run in bands, beside values and sums of their columns", "[loop]") {
  thread_pool pool(2);
  for (const index_t columns : {3, 16, 50, 100, 256, 511})
    for (const index_t rows : {7, 41, 2100}) {
      const auto size = static_cast<std::size_t>(rows * columns), width = static_cast<std::size_t>(columns);
      auto x = counting(rows * columns), y = counting(columns);
      std::vector<double> z(size, -1), sums(width, 5), expected(width, 5);
      setup s;
      s.in[0] = of(x.data(), {columns, 1});
      s.in[1] = of(y.data(), {0, 1});
      s.out[0] = of(z.data(), {columns, 1});
      s.out[1] = of(sums.data(), {0, 1}, true);
      const loop l = make(s, {rows, columns}, 2);
      CHECK(prepared_loop(l).unit() % columns == 0);
      CHECK(prepared_loop(l).unit() >= prepared_loop::band);
      run_loop(l, pool);
      for (std::size_t i = 0; i < size; ++i) {
        REQUIRE(z[i] == x[i] + y[i % width]);
        expected[i % width] += x[i];
      }
      REQUIRE(sums == expected);
    }
}

TEST_CASE("a loop over nothing clears sums and touches no other output", "[loop]") {
  thread_pool pool(1);
  double x = 1;
  double sums[4] = {9, 9, 9, 9};
  setup s;
  s.in[0] = of(&x, {4, 1});
  s.in[1] = of(&x, {0, 0});
  s.out[0] = of(sums, {0, 1});
  run_loop(make(s, {0, 4}, 1), pool);
  for (double v : sums) CHECK(v == 0);
  sums[2] = 5;
  s.out[0] = of(sums, {0, 1}, true);
  run_loop(make(s, {0, 4}, 1), pool);
  CHECK(sums[2] == 5);
}

namespace {

const void* first_read = nullptr;

/// Notes where a pass reads its first elements.
void note_first_read(const void*, const kernel_args& a) {
  if (a.first == 0) first_read = a.in[0];
}

}  // namespace

TEST_CASE("a pass reads operands in their order in memory, unless its elements are counted", "[loop]") {
  const sinter::tensor x = sinter::ones<float>({2, 8, 4, 4}).to_memory_format(sinter::channels_last), y = x.clone();
  const sinter::detail::leaf_ref leaf = sinter::detail::leaf_of(x);
  const sinter::detail::sink_ref sink = sinter::detail::sink_of(y);
  for (const bool counts : {false, true}) {
    first_read = nullptr;
    run_map({&note_first_read, nullptr, &leaf, 1, &sink, 1, counts}, {x.shape().data(), 4}, host_pool());
    CHECK((first_read == x.data()) == !counts);  // copied piece by piece where its order is another
  }
}

// tests/cuda/sort_test.cpp: sort, topk, unique and counts on simulated GPUs, against the CPU.
#include "compare.hpp"

#include "../same_bits.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

namespace {

/// Quarters, among them equals.
template <class T = float, std::size_t R>
tensor<T, int{R}> quarters(const index_t (&shape)[R], int seed) {
  return eval(cast<T>(floor(numbers<float>(shape, seed) * 4)) / T(4));
}

/// Whether others sort pairs, for a scope: on a real GPU CUB, where tests/gpu/cub.cu is in the program, or else the
/// host.
class others_sort {
 public:
  explicit others_sort(bool yes) { set(yes && there()); }
  others_sort(const others_sort&) = delete;
  others_sort& operator=(const others_sort&) = delete;
#if SINTER_WITH_CUDA
  ~others_sort() { set(true); }
  static bool there() { return linked() != nullptr; }

 private:
  static void set(bool yes) { cuda_impl::other_sorter = yes ? linked() : nullptr; }
  static cuda_impl::pair_sorter linked() {
    static const cuda_impl::pair_sorter first = cuda_impl::other_sorter.load();
    return first;
  }
#else
  ~others_sort() { set(false); }
  static bool there() { return true; }

 private:
  static void set(bool yes) { cuda_impl::gpu<g0>::sorts_on_host() = yes; }
#endif
};

/// f(x) on a GPU is the same, to the bit, whoever sorts.
template <class F, class T, int R>
void same_by_others(const F& f, const tensor<T, R>& x) {
  const auto there = x.template to<g0>();
  const auto by = [&](bool others) {
    const others_sort now(others);
    return f(there);
  };
  CHECK(same_bits(by(true), by(false)));
}

}  // namespace

TEST_CASE("sort and topk of rows and columns of any length", "[cuda]") {
  for (const index_t n : {0, 1, 2, 33, 300, 5000}) {
    const auto x = quarters({3, n}, 1);
    CHECK(compare::values([](const auto& v) { return sort(v * 2, 1).values; }, x) <= compare::rounding);
    CHECK(compare::values([n](const auto& v) { return topk(v.transpose(), n / 3, 0).indices; }, x) <=
          compare::rounding);
  }
  CHECK(compare::values([](const auto& v) { return argsort(v, 1, true); }, quarters<double>({5, 70, 3}, 2)) <=
        compare::rounding);
  CHECK(compare::values([](const auto& v) { return argsort(v, 0); }, numbers<std::int8_t>({70001}, 3)) <=
        compare::rounding);
  CHECK(compare::gradients([](const auto& v) { return topk(v * v, 7, 1).values; }, numbers({9, 33}, 4)) < 1e-5);
}

TEST_CASE("topk of long lines finds the few without sorting the others", "[cuda]") {
  const auto same = [](const auto& f, const auto& x) {
    CHECK(compare::values([&](const auto& v) { return f(v).indices; }, x) <= compare::rounding);
    CHECK(compare::values([&](const auto& v) { return f(v).values; }, x) <= compare::rounding);
  };
  for (const index_t n : {4, 9, 257, 4096, 5003})
    for (const index_t k : {index_t{1}, n / 9, n / 4}) {
      if (k < 1) continue;
      same([k](const auto& v) { return topk(v, k, 1); }, quarters({3, n}, 1));  // with many equals
      same([k](const auto& v) { return topk(v * 2, k, 1, false); }, numbers({3, n}, 2));
      same([k](const auto& v) { return topk(v.transpose(), k, 0); }, numbers<double>({2, n}, 3));
    }
  same([](const auto& v) { return topk(v, 5, 1); }, numbers<std::int8_t>({7, 1025}, 4));
  same([](const auto& v) { return topk(v, 1, 1, false); }, zeros<std::int64_t>({2, 5003}));
  same([](const auto& v) { return topk(v, 2, 0); }, eval(numbers({40, 3, 5}, 5) > 2));
  auto x = numbers({1, 600}, 6);
  x(0, 7) = x(0, 599) = std::nanf("");
  x(0, 8) = -INFINITY;
  same([](const auto& v) { return topk(v, 3, 1); }, x);
  same([](const auto& v) { return topk(v, 150, 1, false); }, x);
  const auto there = x.to<g0>();
  const auto before = launches<g0>();
  static_cast<void>(topk(there * 2, 8, 1));
  CHECK(launches<g0>() - before == 1);
}

TEST_CASE("lines that do not fit in one sort follow one another", "[cuda]") {
  const auto x = quarters({6, 7, 5}, 5);
  const auto there = x.to<g0>();
  const detail::leaves_of leaf(there);
  cuda_impl::pass_axes axes(there.shape().data(), 3, 1);
  axes.bind(0, leaf[0]);
  const auto expected = sort(x, 1);
  for (const index_t most : {1, 7, 50, 1000}) {
    const auto values = zeros<float, g0>(x.shape());
    const auto indices = zeros<std::int64_t, g0>(x.shape());
    cuda_impl::sort_on<g0, float>(cuda_impl::make_source<3>(detail::lower<false>(there), axes),
                                  detail::around_axis(x.shape().data(), 3, 1), false, 7, detail::access::data(values),
                                  detail::access::data(indices), most);
    CHECK(distance(values, expected.values) == 0);
    CHECK(distance(indices, expected.indices) == 0);
  }
}

TEST_CASE("unique, bincount and histc", "[cuda]") {
  for (const index_t n : {0, 1, 2, 3000}) {
    const auto x = quarters({n}, 6);
    CHECK(compare::values([](const auto& v) { return unique(v).values; }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return unique(v).inverse; }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return unique(v).counts; }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return histc(v * 2, 7, -8, 8); }, x) <= compare::rounding);
  }
  CHECK(compare::values([](const auto& v) { return bincount(v, 3); }, eval(abs(numbers<int>({5600}, 7)))) <=
        compare::rounding);
  CHECK(compare::values([](const auto& v) { return bincount(v, 5000); }, tensor<int, 1>{7, 4999, 7}) <=
        compare::rounding);
}

TEST_CASE("sorts by others give the same bits", "[cuda]") {
  if (!others_sort::there()) return;
  for (const index_t n : {1, 2, 33, 5000, SINTER_WITH_CUDA ? 3000001 : 20001}) {
    const auto x = quarters({n}, 8);
    same_by_others([](const auto& v) { return sort(v * 2, 0).values; }, x);
    same_by_others([](const auto& v) { return argsort(v, 0, true); }, x);
    same_by_others([](const auto& v) { return unique(v).values; }, x);
    same_by_others([](const auto& v) { return unique(v).inverse; }, x);
    same_by_others([](const auto& v) { return unique(v).counts; }, x);
  }
  const auto indices = [](const auto& v) { return sort(v, 1).indices; };
  same_by_others(indices, quarters({700, 3, 11}, 9));
  same_by_others(indices, quarters<double>({70, 30, 2}, 10));  // the keys and the numbers of the lines are sorted apart
  same_by_others(indices, numbers<std::int8_t>({3, 2000}, 11));
  same_by_others(indices, numbers<std::int64_t>({300, 5}, 12));
  same_by_others([](const auto& v) { return topk(v, 1100, 1).values; }, quarters({3, 1500}, 13));
  auto x = numbers({1, 600}, 14);
  x(0, 7) = x(0, 599) = std::nanf("");
  x(0, 8) = -INFINITY;
  x(0, 9) = -0.f;
  x(0, 10) = 0.f;
  same_by_others([](const auto& v) { return sort(v, 1).values; }, x);
  same_by_others([](const auto& v) { return argsort(v, 1, true); }, x);
}

TEST_CASE("a sort by others counts as one launch, in a captured step too", "[cuda]") {
  if (!others_sort::there()) return;
  const others_sort now(true);
  const auto x = quarters({2, 5000}, 15), y = quarters({2, 5000}, 16);
  const auto there = x.to<g0>();
  const auto before = launches<g0>();
  tensor in_order = sort(there, 1).values;
  CHECK(launches<g0>() - before == 3);
  const auto step = capture<g0>([&] { in_order = sort(there, 1).values; });
  CHECK(step.kernels() == 3);
  copy(y, there);
  step.replay();
  CHECK(same_bits(in_order, sort(y, 1).values));
  copy(x, there);
  step.replay();
  CHECK(same_bits(in_order, sort(x, 1).values));
}

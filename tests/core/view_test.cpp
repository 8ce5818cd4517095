// tests/core/view_test.cpp: views against naive index arithmetic, over random shapes and chains of views.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <limits>
#include <random>
#include <vector>

using namespace sinter;

namespace {

/// A dense array with the same elements as a view, computed index by index.
struct naive {
  std::vector<index_t> shape;
  std::vector<int> values;

  index_t numel() const {
    index_t n = 1;
    for (index_t e : shape) n *= e;
    return n;
  }
  std::vector<index_t> index(index_t linear) const {
    std::vector<index_t> at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
      at[d] = linear % shape[d];
      linear /= shape[d];
    }
    return at;
  }
  int at(const std::vector<index_t>& i) const {
    index_t linear = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) linear = linear * shape[d] + i[d];
    return values[static_cast<std::size_t>(linear)];
  }
  /// The array of this shape whose element i is this one's element map(i).
  template <class F>
  naive remap(std::vector<index_t> to, F map) const {
    naive out{std::move(to), {}};
    const index_t n = out.numel();
    for (index_t k = 0; k < n; ++k) out.values.push_back(at(map(out.index(k))));
    return out;
  }
};

template <int R>
void check_same(const tensor<int, R>& t, const naive& n) {
  REQUIRE(n.shape.size() == static_cast<std::size_t>(R));
  for (int d = 0; d < R; ++d) REQUIRE(t.shape()[d] == n.shape[static_cast<std::size_t>(d)]);
  const tensor<int, R> dense = t.contiguous();
  REQUIRE(dense.is_contiguous());
  for (index_t k = 0; k < n.numel(); ++k) {
    REQUIRE(dense.data()[k] == n.values[static_cast<std::size_t>(k)]);
    index_t offset = 0;
    const auto at = n.index(k);
    for (int d = 0; d < R; ++d) offset += at[static_cast<std::size_t>(d)] * t.strides()[d];
    REQUIRE(t.data()[offset] == n.values[static_cast<std::size_t>(k)]);
  }
}

using random_source = std::mt19937;
index_t pick(random_source& gen, index_t n) { return static_cast<index_t>(gen() % static_cast<unsigned>(n)); }

/// One random view of t that keeps the rank, applied to both.
void random_step(random_source& gen, tensor<int, 3>& t, naive& n) {
  const int a = static_cast<int>(pick(gen, 3));
  const auto ua = static_cast<std::size_t>(a);
  switch (pick(gen, 4)) {
    case 0: {
      const index_t extent = n.shape[ua], begin = pick(gen, extent + 1), end = begin + pick(gen, extent - begin + 1),
                    step = 1 + pick(gen, 3);
      const bool from_end = gen() % 2 == 0 && end < extent;
      t = tensor<int, 3>(t.slice(a, begin, from_end ? end - extent : end, step));
      auto shape = n.shape;
      shape[ua] = 0;
      for (index_t i = begin; i < end; i += step) ++shape[ua];
      n = n.remap(shape, [&](std::vector<index_t> i) { return i[ua] = begin + i[ua] * step, i; });
      break;
    }
    case 1: {
      t = tensor<int, 3>(t.flip(a - 3));
      n = n.remap(n.shape, [&](std::vector<index_t> i) { return i[ua] = n.shape[ua] - 1 - i[ua], i; });
      break;
    }
    case 2: {
      const int b = static_cast<int>(pick(gen, 3));
      t = tensor<int, 3>(t.transpose(a, b));
      auto shape = n.shape;
      std::swap(shape[ua], shape[static_cast<std::size_t>(b)]);
      n = n.remap(shape, [&](std::vector<index_t> i) { return std::swap(i[ua], i[static_cast<std::size_t>(b)]), i; });
      break;
    }
    default: {
      const index_t orders[][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
      const auto& order = orders[pick(gen, 6)];
      t = tensor<int, 3>(t.permute({order[0], order[1], order[2] - 3}));
      std::vector<index_t> shape(3);
      for (int d = 0; d < 3; ++d) shape[static_cast<std::size_t>(d)] = n.shape[static_cast<std::size_t>(order[d])];
      n = n.remap(shape, [&](const std::vector<index_t>& i) {
        std::vector<index_t> from(3);
        for (int d = 0; d < 3; ++d) from[static_cast<std::size_t>(order[d])] = i[static_cast<std::size_t>(d)];
        return from;
      });
    }
  }
}

std::pair<tensor<int, 3>, naive> random_start(random_source& gen) {
  const index_t s[3] = {1 + pick(gen, 5), 1 + pick(gen, 5), 1 + pick(gen, 5)};
  naive n{{s[0], s[1], s[2]}, {}};
  for (int i = 0; i < n.numel(); ++i) n.values.push_back(i);
  return {arange<int>(static_cast<int>(n.numel())).reshape({s[0], s[1], s[2]}), n};
}

}  // namespace

TEST_CASE("chains of slice, flip, transpose and permute show the elements that index arithmetic says", "[view]") {
  random_source gen(11);
  for (int trial = 0; trial < 300; ++trial) {
    auto [t, n] = random_start(gen);
    const auto* storage = sinter::detail::access::storage_of(t).get();
    for (int step = 0; step < 4; ++step) {
      random_step(gen, t, n);
      check_same(t, n);
    }
    CHECK(sinter::detail::access::storage_of(t).get() == storage);
  }
}

TEST_CASE("reshape of any strided view keeps the row-major order of elements", "[view]") {
  random_source gen(12);
  int shared = 0, copied = 0;
  for (int trial = 0; trial < 400; ++trial) {
    auto [t, n] = random_start(gen);
    for (int step = 0; step < 2; ++step) random_step(gen, t, n);
    const index_t count = n.numel();
    index_t a = 1 + pick(gen, 6), b = 1 + pick(gen, 6);
    if (count == 0 || count % (a * b) != 0) a = b = 1;
    const auto r = count == 0 ? t.reshape({a, 0, b, 3}) : t.reshape({a, -1, 1, b});
    check_same(
        r, {count == 0 ? std::vector<index_t>{a, 0, b, 3} : std::vector<index_t>{a, count / (a * b), 1, b}, n.values});
    (sinter::detail::access::storage_of(r).get() == sinter::detail::access::storage_of(t).get() ? shared : copied)++;
    check_same(t.flatten(), {{count}, n.values});
  }
  CHECK(shared > 50);
  CHECK(copied > 20);
}

TEST_CASE("reshape shares storage wherever strides can show the new shape", "[view]") {
  const auto x = arange<int>(24).reshape({2, 3, 4});
  const auto same = [](const auto& a, const auto& b) {
    return sinter::detail::access::storage_of(a).get() == sinter::detail::access::storage_of(b).get();
  };
  CHECK(same(x, x.reshape({6, 4})));
  CHECK(same(x, x.slice(2, 0, 2).reshape({6, 2})));
  CHECK_FALSE(same(x, x.slice(2, 0, 2).reshape({12})));
  CHECK(same(x, x.transpose(0, 1).reshape({3, 2, 2, 2})));
  CHECK_FALSE(same(x, x.transpose().reshape({24})));
  CHECK(same(x, x.flip(0).reshape({2, 12})));
}

TEST_CASE("select, squeeze, unsqueeze and broadcast_to show the right elements", "[view]") {
  random_source gen(13);
  for (int trial = 0; trial < 150; ++trial) {
    auto [t, n] = random_start(gen);
    random_step(gen, t, n);
    if (n.numel() == 0) continue;
    const int a = static_cast<int>(pick(gen, 3));
    const auto ua = static_cast<std::size_t>(a);
    const index_t i = pick(gen, n.shape[ua]);
    auto less = n.shape;
    less.erase(less.begin() + a);
    const auto selected = n.remap(less, [&](std::vector<index_t> at) { return at.insert(at.begin() + a, i), at; });
    check_same(t.select(a, i), selected);
    check_same(t.select(a - 3, i - n.shape[ua]), selected);
    if (a == 0) check_same(t[i], selected);

    auto more = n.shape;
    more.insert(more.begin() + a, 1);
    const auto longer = t.unsqueeze(a);
    check_same(longer, {more, n.values});
    check_same(longer.squeeze(a), n);

    more[ua] = 4;
    check_same(longer.broadcast_to({more[0], more[1], more[2], more[3]}),
               n.remap(more, [&](std::vector<index_t> at) { return at.erase(at.begin() + a), at; }));
    std::vector<index_t> wide = n.shape;
    wide.insert(wide.begin(), 2);
    check_same(t.broadcast_to({wide[0], wide[1], wide[2], wide[3]}),
               n.remap(wide, [&](std::vector<index_t> at) { return at.erase(at.begin()), at; }));
  }
}

TEST_CASE("flip twice, transpose twice and inverse permutations give the same view back", "[view]") {
  const auto x = arange<int>(60).reshape({3, 4, 5});
  CHECK(x.flip(1).flip(1).data() == x.data());
  CHECK(x.flip(1).flip(1).strides() == x.strides());
  CHECK(x.transpose(0, 2).transpose(0, 2).strides() == x.strides());
  CHECK(x.permute({1, 2, 0}).permute({2, 0, 1}).strides() == x.strides());
}

TEST_CASE("views of wrong arguments are rejected with the argument in the text", "[view]") {
  const auto x = zeros<float>({3, 4});
  CHECK_THROWS_AS(x.slice(0, 2, 1), index_error);
  CHECK_THROWS_AS(x.slice(0, 0, 4), index_error);
  CHECK_THROWS_AS(x.slice(0, -4, 3), index_error);
  CHECK_THROWS_AS(x.slice(2, 0, 1), index_error);
  CHECK_THROWS_AS(x.slice(0, 0, 3, 0), value_error);
  CHECK_THROWS_AS(x.slice(0, 0, 3, -1), value_error);
  CHECK_THROWS_WITH(x.slice(0, 0, 3, -1), Catch::Contains("flip"));
  CHECK_THROWS_AS(x.select(0, 3), index_error);
  CHECK_THROWS_AS(x.select(0, -4), index_error);
  CHECK_THROWS_AS(x.reshape({5, -1}), shape_error);
  CHECK_THROWS_AS(x.reshape({-1, -1}), shape_error);
  CHECK_THROWS_AS(x.reshape({-2, 6}), shape_error);
  CHECK_THROWS_WITH(x.reshape({7}), Catch::Contains("(3, 4)") && Catch::Contains("(7,)"));
  CHECK_THROWS_AS(x.permute({0, 0}), value_error);
  CHECK_THROWS_AS(x.permute({0, 2}), index_error);
  CHECK_THROWS_AS(x.squeeze(0), shape_error);
  CHECK_THROWS_AS(x.unsqueeze(3), index_error);
  CHECK_THROWS_AS(x.transpose(0, 2), index_error);
  CHECK_THROWS_AS(x.flip(2), index_error);
  CHECK_THROWS_AS(x.broadcast_to({2, 4}), shape_error);
}

TEST_CASE("slices accept empty ranges and steps of any size", "[view]") {
  const auto x = arange<int>(5);
  const index_t max = std::numeric_limits<index_t>::max();
  CHECK(x.slice(0, 5, 5).numel() == 0);
  CHECK(x.slice(0, 0, 5, max).numel() == 1);
  CHECK(x.slice(0, 1, 5, max)(0) == 1);
  CHECK(x.slice(0, 0, 5, 4)(1) == 4);
  CHECK(x.slice(0, 0, 5, max).slice(0, 0, 1, max)(0) == 0);
}

TEST_CASE("views with a zero extent stay usable", "[view]") {
  const auto x = zeros<float>({3, 0, 2});
  CHECK(x.transpose(0, 1).numel() == 0);
  CHECK(x.flip(1).numel() == 0);
  CHECK(x.reshape({0}).numel() == 0);
  CHECK(x.reshape({4, 0}).shape() == extents<2>{{4, 0}});
  CHECK(x.permute({2, 0, 1}).is_contiguous());
  CHECK(zeros<float>({3, 0}).transpose().span().empty());
  CHECK(x.select(0, 2).shape() == extents<2>{{0, 2}});
  CHECK_THROWS_AS(x.select(1, 0), index_error);
  CHECK(x.clone().shape() == x.shape());
  CHECK_THROWS_AS(x.reshape({-1, 0}), shape_error);
  CHECK(zeros<float>({1, 3}).broadcast_to({0, 3}).numel() == 0);
}

// tests/expr/random_expression_test.cpp: expressions over leaves of random shape and layout against a naive evaluator.
#include "random_expression.hpp"

#include <random>

#include "../catch.hpp"

using namespace random_expression;

void random_expression::append_part_0(std::vector<entry>& entries) { append_entries<0>(entries); }

namespace {

index_t product(const std::vector<index_t>& shape) {
  index_t n = 1;
  for (const index_t s : shape) n *= s;
  return n;
}

/// Steps through all indices of a shape; false at the end.
bool advance(std::vector<index_t>& index, const std::vector<index_t>& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

/// Where element `index` of a larger shape finds its value in l, by NumPy's rule.
std::size_t position(const leaf& l, const std::vector<index_t>& index, const std::vector<index_t>& strides) {
  index_t at = 0;
  const std::size_t shift = index.size() - l.shape.size();
  for (std::size_t d = 0; d < l.shape.size(); ++d) at += (l.shape[d] == 1 ? 0 : index[d + shift]) * strides[d];
  return static_cast<std::size_t>(at);
}

/// Axes in random order in memory, with gaps, some reversed, some repeated where `may_repeat`.
leaf random_layout(std::mt19937& random, const std::vector<index_t>& shape, bool may_repeat) {
  leaf l;
  l.shape = shape;
  l.strides.resize(shape.size());
  std::vector<std::size_t> order(shape.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  index_t step = random() % 3 == 0 ? 2 : 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::size_t d = order[k];
    const auto choice = random() % 6;
    if (choice == 0 && may_repeat) continue;  // stride 0
    l.strides[d] = step;
    step *= shape[d] + static_cast<index_t>(choice == 1 ? 2 : 0);
    if (choice == 2) {
      l.offset += (shape[d] - 1) * l.strides[d];
      l.strides[d] = -l.strides[d];
    }
  }
  l.offset += static_cast<index_t>(random() % 5);
  l.memory.resize(static_cast<std::size_t>(step + l.offset + 8));
  for (double& x : l.memory) x = static_cast<double>(std::uniform_real_distribution<float>(-2, 2)(random));
  return l;
}

struct trial {
  std::vector<leaf> leaves;
  std::vector<index_t> shape;
};

/// Leaves that broadcast together.
trial random_trial(std::mt19937& random, const entry& e) {
  trial t;
  const auto rank = static_cast<std::size_t>(std::max({e.rank[0], e.rank[1], e.rank[2]}));
  std::vector<index_t> full(rank);
  for (index_t& s : full) s = static_cast<index_t>(1 + random() % (random() % 3 == 0 ? 19 : 5));
  t.shape.assign(rank, 1);
  for (const int r : e.rank) {
    std::vector<index_t> shape(full.end() - r, full.end());
    for (index_t& s : shape)
      if (random() % 4 == 0) s = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      index_t& s = t.shape[rank - shape.size() + d];
      s = std::max(s, shape[d]);
    }
    t.leaves.push_back(random_layout(random, shape, true));
  }
  return t;
}

values naive(const entry& e, const trial& t, int moved = -1, double by = 0) {
  values result;
  std::vector<index_t> index(t.shape.size());
  do {
    double v[3];
    for (int i = 0; i < 3; ++i) {
      const leaf& l = t.leaves[static_cast<std::size_t>(i)];
      v[i] = l.memory[static_cast<std::size_t>(l.offset) + position(l, index, l.strides)] + (i == moved ? by : 0);
    }
    result.push_back(e.formula(v[0], v[1], v[2]));
  } while (advance(index, t.shape));
  return result;
}

double worst_difference(const values& a, const values& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(a[i] - b[i]) / (1 + std::fabs(b[i]));
    worst = d > worst || std::isnan(d) ? d : worst;
    if (std::isnan(worst)) break;
  }
  return worst;
}

std::vector<entry> all_entries() {
  std::vector<entry> entries;
  append_part_0(entries);
  append_part_1(entries);
  append_part_2(entries);
  append_part_3(entries);
  return entries;
}

template <class F>
void for_each_trial(F f) {
  int n = 0;
  for (const entry& e : all_entries())
    for (unsigned seed = 0; seed < 8; ++seed) {
      std::mt19937 random(1000 * static_cast<unsigned>(n) + seed);
      const trial t = random_trial(random, e);
      INFO(e.text << ", ranks " << e.rank[0] << e.rank[1] << e.rank[2] << ", seed " << seed << ", shape "
                  << sinter::detail::shape_text(t.shape.data(), static_cast<int>(t.shape.size())));
      f(e, t, random);
      ++n;
    }
  CHECK(n >= 400);
}

}  // namespace

TEST_CASE("random expressions have the values of a naive evaluator") {
  for_each_trial([](const entry& e, const trial& t, std::mt19937&) {
    const values expected = naive(e, t);
    CHECK(worst_difference(e.in_double(t.leaves), expected) < 1e-14);
    CHECK(worst_difference(e.in_float(t.leaves), expected) < 1e-5);
  });
}

TEST_CASE("random expressions write through views of any layout and nothing beside them") {
  for_each_trial([](const entry& e, const trial& t, std::mt19937& random) {
    const leaf to = random_layout(random, t.shape, false);
    const values dense = e.in_double(t.leaves);
    values expected = to.memory;
    std::vector<index_t> index(t.shape.size());
    std::size_t i = 0;
    do {
      index_t at = to.offset;
      for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * to.strides[d];
      expected[static_cast<std::size_t>(at)] = dense[i++];
    } while (advance(index, t.shape));
    CHECK(e.into(t.leaves, to) == expected);
  });
}

TEST_CASE("gradients of random expressions are sums of central differences") {
  for_each_trial([](const entry& e, const trial& t, std::mt19937& random) {
    values seed(static_cast<std::size_t>(product(t.shape)));
    for (double& x : seed) x = std::uniform_real_distribution<double>(-1, 1)(random);
    const std::vector<values> got = e.gradients(t.leaves, seed);
    for (int i = 0; i < 3; ++i) {
      const leaf& l = t.leaves[static_cast<std::size_t>(i)];
      const double h = 1e-6;
      const values above = naive(e, t, i, h), below = naive(e, t, i, -h);
      values expected(static_cast<std::size_t>(product(l.shape)));
      leaf dense = l;
      index_t step = 1;
      for (std::size_t d = l.shape.size(); d-- > 0;) {
        dense.strides[d] = step;
        step *= l.shape[d];
      }
      std::vector<index_t> index(t.shape.size());
      std::size_t at = 0;
      do {
        expected[position(dense, index, dense.strides)] += seed[at] * (above[at] - below[at]) / (2 * h);
        ++at;
      } while (advance(index, t.shape));
      INFO("leaf " << i);
      if (!e.tracked[i]) CHECK(got[static_cast<std::size_t>(i)].empty());
      else CHECK(worst_difference(got[static_cast<std::size_t>(i)], expected) < 1e-6);
    }
  });
}

// tests/parallel/tile_geometry_test.cpp: what tiles read of each other, for every window along one axis.
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>
#include <vector>
#include "../catch.hpp"

using namespace sinter;
using nn::detail::common;
using nn::detail::needed;
using nn::detail::owned;
using nn::detail::tile_interval;

namespace {

/// A layer along one axis: y(o) = sum over taps of w(tap) x(o stride - before + tap dilation).
struct layer {
  index_t taps, stride, before, after, dilation;
  index_t reach() const { return dilation * (taps - 1) + 1; }
  index_t results(index_t n) const {
    const index_t room = n + before + after - reach();
    return room < 0 ? 0 : room / stride + 1;
  }
};

using numbers = std::vector<double>;

/// Whole numbers, so that sums are exact in any order.
numbers whole_numbers(index_t n, index_t salt) {
  numbers x(static_cast<std::size_t>(n));
  for (index_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = static_cast<double>((i * 7 + salt) % 11 - 4);
  return x;
}

struct outcome {
  numbers y, dx, dw;
  bool operator==(const outcome&) const = default;
};

/// Values and gradients of results `of`, where x shows the elements from `first` on and padding stands around it.
outcome compute(const layer& l, const numbers& x, index_t first, const numbers& w, const tile_interval& of) {
  outcome r{{}, numbers(x.size()), numbers(w.size())};
  const index_t n = static_cast<index_t>(x.size());
  for (index_t o = of.begin; o < of.end; ++o) {
    double sum = 0;
    const double g = static_cast<double>(o % 5 - 1);
    for (index_t t = 0; t < l.taps; ++t) {
      const index_t i = o * l.stride - l.before + t * l.dilation - first;
      if (i < 0 || i >= n) continue;
      sum += w[static_cast<std::size_t>(t)] * x[static_cast<std::size_t>(i)];
      r.dx[static_cast<std::size_t>(i)] += g * w[static_cast<std::size_t>(t)];
      r.dw[static_cast<std::size_t>(t)] += g * x[static_cast<std::size_t>(i)];
    }
    r.y.push_back(sum);
  }
  return r;
}

/// The same over tiles: each has only what it owns, and what it fetches.
outcome compute_in_tiles(const layer& l, const numbers& x, const numbers& w, int tiles, bool fetches, bool returns) {
  const index_t n = static_cast<index_t>(x.size());
  outcome all{{}, numbers(x.size()), numbers(w.size())};
  for (int t = 0; t < tiles; ++t) {
    const tile_interval out = owned(l.results(n), tiles, t);
    const tile_interval need = needed({l.reach(), l.stride, l.before}, out);
    numbers local(static_cast<std::size_t>(need.size()));  // padding is 0
    for (int u = 0; u < tiles; ++u) {
      const tile_interval strip = common(need, owned(n, tiles, u));
      for (index_t i = strip.begin; i < strip.end && (fetches || u == t); ++i)
        local[static_cast<std::size_t>(i - need.begin)] = x[static_cast<std::size_t>(i)];
    }
    const outcome own = compute(l, local, need.begin, w, out);
    all.y.insert(all.y.end(), own.y.begin(), own.y.end());
    for (std::size_t k = 0; k < w.size(); ++k) all.dw[k] += own.dw[k];
    for (int u = 0; u < tiles; ++u) {
      const tile_interval strip = common(need, owned(n, tiles, u));
      for (index_t i = strip.begin; i < strip.end && (returns || u == t); ++i)
        all.dx[static_cast<std::size_t>(i)] += own.dx[static_cast<std::size_t>(i - need.begin)];
    }
  }
  return all;
}

}  // namespace

TEST_CASE("tiles along one axis give exactly what the whole gives, for every small window", "[parallel]") {
  int checked = 0, wrong = 0, seen_without_halo = 0, seen_without_return = 0;
  for (index_t taps = 1; taps <= 5; ++taps)
    for (index_t stride = 1; stride <= 4; ++stride)
      for (index_t before = 0; before <= taps / 2; ++before)
        for (index_t after = 0; after <= taps / 2; ++after)
          for (index_t dilation = 1; dilation <= 3; ++dilation)
            for (index_t n = 1; n <= 17; ++n) {
              const layer l{taps, stride, before, after, dilation};
              if (l.results(n) == 0) continue;
              const numbers x = whole_numbers(n, taps), w = whole_numbers(taps, stride);
              const outcome expected = compute(l, x, 0, w, {0, l.results(n)});
              for (int tiles = 1; tiles <= 4; ++tiles) {
                ++checked;
                wrong += int{!(compute_in_tiles(l, x, w, tiles, true, true) == expected)};
                seen_without_halo += int{!(compute_in_tiles(l, x, w, tiles, false, true).y == expected.y)};
                const outcome kept = compute_in_tiles(l, x, w, tiles, true, false);
                seen_without_return += int{kept.y == expected.y && !(kept.dx == expected.dx)};
              }
            }
  CHECK(wrong == 0);
  CHECK(checked > 16000);
  CHECK(seen_without_halo > checked / 4);  // tiles that do not fetch, or do not return, are found out
  CHECK(seen_without_return > checked / 4);
}

TEST_CASE("halos of two tiles are those of the literature", "[parallel]") {
  struct row {
    index_t n, reach, stride, before, after;  ///< of the layer
    index_t below, above;                     ///< rows that the upper tile reads of the lower one, and the reverse
  };
  const row table[] = {{224, 3, 1, 1, 1, 1, 1}, {224, 5, 1, 2, 2, 2, 2},  {224, 7, 2, 3, 3, 2, 3},
                       {112, 3, 2, 1, 1, 0, 1}, {224, 11, 4, 2, 2, 5, 2}, {55, 3, 2, 0, 0, 1, 0},
                       {13, 3, 2, 0, 0, 0, 1},  {56, 1, 1, 0, 0, 0, 0}};
  for (const row& r : table) {
    INFO(r.n << " elements, reach " << r.reach << ", stride " << r.stride);
    const index_t results = (r.n + r.before + r.after - r.reach) / r.stride + 1;
    const nn::tile_window w{r.reach, r.stride, r.before};
    const tile_interval upper = owned(r.n, 2, 0), lower = owned(r.n, 2, 1);
    CHECK(common(needed(w, owned(results, 2, 0)), lower).size() == r.below);
    CHECK(common(needed(w, owned(results, 2, 1)), upper).size() == r.above);
  }
}

TEST_CASE("parts of an axis differ by one element at most", "[parallel]") {
  for (index_t n = 0; n <= 9; ++n)
    for (int parts = 1; parts <= 4; ++parts) {
      index_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const tile_interval own = owned(n, parts, part);
        CHECK(own.begin == next);
        CHECK((own.size() == n / parts || own.size() == n / parts + 1));
        next = own.end;
      }
      CHECK(next == n);
    }
}

// sinter/cpu/embedding_bag.hpp: rows of a table on the host, joined bag by bag.
#pragma once

#include "sinter/cpu/embedding.hpp"
#include "sinter/ops/embedding_bag.hpp"

namespace sinter::cpu_impl {

/// How many ids of a bag are none of padding.
inline index_t ids_in_bag(const ops::id_bags& bags, index_t b, index_t padding) {
  index_t n = 0;
  for (index_t p = bags.begin(b); p < bags.begin(b + 1); ++p) n += bags.ids[p] != padding;
  return n;
}

/// f(first, last) for ranges of bags.
template <class F>
void in_bag_groups(const ops::id_bags& bags, index_t columns, thread_pool& pool, const F& f) {
  const auto work_before = [&](index_t b) { return b + bags.begin(b); };
  in_equal_parts(bags.count, rows_of_task(columns), 1, work_before, pool,
                 [&](index_t first, index_t last, index_t) { f(first, last); });
}

/// y[b] = the sum of weight(place) times the row of each place in bag b, or their mean.
template <class T, class Weight>
void sum_bags(const ops::id_bags& bags, index_t padding, bool mean, const table_view<T>& table, const Weight& weight,
              T* y, thread_pool& pool) {
  using C = compute_type<T>;
  in_bag_groups(bags, table.columns, pool, [&](index_t first, index_t last) {
    for (index_t b = first; b < last; ++b) {
      const index_t begin = bags.begin(b), n = bags.begin(b + 1) - begin;
      const index_t in_bag = mean ? ids_in_bag(bags, b, padding) : 0;
      const C scale = in_bag > 0 ? C(1) / static_cast<C>(in_bag) : C(1);
      const auto row = [&](index_t i, auto c) SINTER_INLINE_LAMBDA {
        const index_t id = bags.ids[begin + i];
        return id == padding ? vector<T>(C(0)) : table.load(id, c) * vector<T>(weight(begin + i));
      };
      const auto put = [&](auto c, vector<T> sum)
                           SINTER_INLINE_LAMBDA { store_row(y + b * table.columns, c, table.columns, sum); };
      each_columns(0, table.columns, [&](auto c, auto vectors) SINTER_INLINE_LAMBDA {
        sum_terms<T, decltype(vectors)::value>(n, c, scale, row, put);
      });
    }
  });
}

/// N vectors of columns from c on: the largest elements of the rows at places [begin, end), of which `first` is the
/// first in the bag, and, unless `places` is null, where they stand.
template <class T, int N, class Place>
SINTER_INLINE void max_of_places(const ops::id_bags& bags, index_t first, index_t end, index_t padding,
                                 const table_view<T>& table, Place c, T* y, std::int32_t* places) {
  using C = compute_type<T>;
  using I = math::detail::mask_lane_t<C>;
  using numbers = math::simd<I, lanes>;
  vector<T> most[std::size_t{N}];
  numbers place[std::size_t{N}];
  for (int k = 0; k < N; ++k) {
    most[k] = vector<T>(-std::numeric_limits<C>::infinity());
    place[k] = numbers(static_cast<I>(first));
  }
  for (index_t p = first; p < end; ++p) {
    const index_t id = bags.ids[p];
    if (id == padding) continue;
    for (int k = 0; k < N; ++k) {
      const vector<T> value = table.load(id, Place{c.first + k * lanes});
      const auto is_better = math::logical_or(value > most[k], value != value);
      most[k] = math::select(is_better, value, most[k]);
      place[k] = math::select(is_better, numbers(static_cast<I>(p)), place[k]);
    }
  }
  for (int k = 0; k < N; ++k) {
    const Place at{c.first + k * lanes};
    store_row(y, at, table.columns, most[k]);
    if (places != nullptr) store_row(places, at, table.columns, math::cast<std::int32_t>(place[k]));
  }
}

/// y[b] = the largest elements of the rows in bag b, NaN where there is one, and, unless `places` is null, where they
/// stand among the ids.
template <class T>
void max_of_bags(const ops::id_bags& bags, index_t padding, const table_view<T>& table, T* y, std::int32_t* places,
                 thread_pool& pool) {
  const index_t columns = table.columns;
  in_bag_groups(bags, columns, pool, [&](index_t first, index_t last) {
    for (index_t b = first; b < last; ++b) {
      const index_t end = bags.begin(b + 1);
      index_t begin = bags.begin(b);
      while (begin < end && bags.ids[begin] == padding) ++begin;
      T* const to = y + b * columns;
      std::int32_t* const of_bag = places != nullptr ? places + b * columns : nullptr;
      if (begin == end) {
        std::fill_n(to, columns, T(0));
        if (of_bag != nullptr) std::fill_n(of_bag, columns, -1);
        continue;
      }
      each_columns(0, columns, [&](auto c, auto vectors) SINTER_INLINE_LAMBDA {
        max_of_places<T, decltype(vectors)::value>(bags, begin, end, padding, table, c, to, of_bag);
      });
    }
  });
}

/// What backward asks of a place: its bag, and what the mean of a bag divides by.
template <class C>
struct bag_places {
  detail::temporary_array<std::uint32_t> bag;  ///< of each place in a bag
  detail::temporary_array<C> scale;            ///< of each bag
  index_t n;                                   ///< places in bags

  bag_places(const ops::id_bags& bags, bool mean, index_t padding)
      : bag(bags.n), scale(bags.count), n(bags.begin(bags.count)) {
    for (index_t b = 0; b < bags.count; ++b) {
      for (index_t p = bags.begin(b); p < bags.begin(b + 1); ++p) bag[p] = static_cast<std::uint32_t>(b);
      const index_t in_bag = mean ? ids_in_bag(bags, b, padding) : 0;
      scale[b] = in_bag > 0 ? C(1) / static_cast<C>(in_bag) : C(1);
    }
  }
};

/// d weight[p] (+)= the sum of g of its bag times its row; 0 for padding, and for ids that are in no bag.
template <class T>
void reverse_weights(const ops::id_bags& bags, const bag_places<compute_type<T>>& at, index_t padding,
                     const table_view<T>& table, const T* g, T* dw, bool add, thread_pool& pool) {
  using C = compute_type<T>;
  const index_t grain = rows_of_task(table.columns);
  pool.parallel_for((bags.n + grain - 1) / grain, [&](index_t task) {
    for (index_t p = task * grain; p < std::min((task + 1) * grain, bags.n); ++p) {
      C sum = 0;
      if (p < at.n && bags.ids[p] != padding) {
        const T* const of_bag = g + index_t{at.bag[p]} * table.columns;
        sum = row_sum<T>(table.columns, [&](auto c) SINTER_INLINE_LAMBDA {
          return load_row<T>(of_bag, c, table.columns) * table.load(bags.ids[p], c);
        });
      }
      dw[p] = static_cast<T>(add ? static_cast<C>(dw[p]) + sum : sum);
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <std::derived_from<ops::bag_op> Op, device D>
  requires is_cpu_v<D>
struct kernels<Op, D> {
  using list = tensor<std::int64_t, 1, D>;

  template <class T, class Epilogue>
  static tensor<std::int32_t, 2, D> forward(const Op& op, const tensor<T, 2, D>& y, const Epilogue*,
                                            const tensor<T, 2, D>& table, const list& packed) {
    const auto bags = checked_bags(op, packed, table.shape()[0], "embedding_bag");
    const auto rows = cpu_impl::view_of_table(table);
    tensor<std::int32_t, 2, D> places;
    if (op.mode == bag_mode::max) {
      if (recording()) places = tensor<std::int32_t, 2, D>::uninitialized(y.shape());
      cpu_impl::max_of_bags(bags, op.padding, rows, y.data(), places.data(), pool());
    } else {
      const auto one = [](index_t) SINTER_INLINE_LAMBDA { return compute_type<T>(1); };
      cpu_impl::sum_bags(bags, op.padding, op.mode == bag_mode::mean, rows, one, y.data(), pool());
    }
    return places;
  }
  template <class T, int R, class Epilogue>
  static nothing_saved forward(const Op& op, const tensor<T, 2, D>& y, const Epilogue*, const tensor<T, 2, D>& table,
                               const tensor<T, R, D>& weights, const list& packed) {
    const auto bags = checked_bags(op, packed, table.shape()[0], "embedding_bag");
    const auto weight = [w = weights.data()](index_t p)
                            SINTER_INLINE_LAMBDA { return static_cast<compute_type<T>>(w[p]); };
    cpu_impl::sum_bags(bags, op.padding, false, cpu_impl::view_of_table(table), weight, y.data(), pool());
    return {};
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    using T = typename Backward::value_type;
    using C = compute_type<T>;
    constexpr bool is_weighted = Backward::differentiable == 2;
    const list& packed = b.template operand<is_weighted ? 2 : 1>();
    const ops::id_bags bags = op.bags_in(packed.data(), packed.numel());
    const cpu_impl::bag_places<C> at(bags, op.mode == bag_mode::mean, op.padding);
    const T* const g = b.gradient().data();
    const index_t columns = b.gradient().shape()[1];
    if (b.template wants<0>()) {
      const auto give = [&](bool by_frequency, const auto& row) {
        cpu_impl::give_sums_at_ids(b, bags.ids, at.n, op.padding, by_frequency, {"backward of 'embedding_bag'", "id"},
                                   row);
      };
      const auto add_up = [&](const auto& factor) {
        const auto row = [&](index_t p, auto c) SINTER_INLINE_LAMBDA {
          return cpu_impl::load_row<T>(g + index_t{at.bag[p]} * columns, c, columns) * cpu_impl::vector<T>(factor(p));
        };
        give(op.by_frequency, row);
      };
      if constexpr (is_weighted) {
        add_up([w = b.template operand<1>().data()](index_t p) SINTER_INLINE_LAMBDA { return static_cast<C>(w[p]); });
      } else if (op.mode == bag_mode::max) {
        const std::int32_t* const places = b.saved.data();
        const auto row = [&](index_t p, auto c) SINTER_INLINE_LAMBDA {
          const index_t of_bag = index_t{at.bag[p]} * columns;
          const auto is_here = cpu_impl::load_row(places + of_bag, c, columns) ==
                               cpu_impl::vector<std::int32_t>(static_cast<std::int32_t>(p));
          return math::select(is_here, cpu_impl::load_row(g + of_bag, c, columns), cpu_impl::vector<T>(C(0)));
        };
        give(false, row);
      } else {
        add_up([&](index_t p) SINTER_INLINE_LAMBDA { return at.scale[at.bag[p]]; });
      }
    }
    if constexpr (is_weighted) {
      if (!b.template wants<1>()) return;
      const auto place = b.template place_of<1>();
      cpu_impl::reverse_weights(bags, at, op.padding, cpu_impl::view_of_table(b.template operand<0>()), g,
                                place.to.data(), place.add, pool());
    }
  }

 private:
  static auto& pool() { return cpu_impl::pool_of<D>(); }
  /// Ids may have changed since the expression was made, where they are the caller's own.
  static ops::id_bags checked_bags(const Op& op, const list& packed, index_t rows, const char* name) {
    const ops::id_bags bags = op.bags_in(packed.data(), packed.numel());
    kernels<ops::index_check, D>::run({name, "id"}, bags.ids, bags.n, rows);
    return bags;
  }
};

}  // namespace sinter::detail

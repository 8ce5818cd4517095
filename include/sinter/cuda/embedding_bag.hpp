// sinter/cuda/embedding_bag.hpp: rows of a table on GPUs, joined bag by bag: a thread for each result. Plain kernels,
// not tuned.
#pragma once

#include "sinter/cuda/embedding.hpp"
#include "sinter/ops/embedding_bag.hpp"

namespace sinter::cuda_impl {

/// What the sum of bag b is divided by: for a mean the ids that are in it.
template <class C>
SINTER_WORD C divisor_of_bag(const ops::id_bags& bags, index_t b, bool mean, index_t padding) {
  index_t n = 0;
  if (mean)
    for (index_t p = bags.begin(b); p < bags.begin(b + 1); ++p) n += bags.ids[p] != padding;
  return n > 0 ? static_cast<C>(n) : C(1);
}

/// y[b] = the sum of the rows in bag b, times their weights unless these are null, or the mean.
template <class T>
struct sum_bags_body {
  using C = compute_type<T>;
  ops::id_bags bags;
  index_t padding;
  bool mean;
  table_view<T> table;
  splitter by_columns;
  const T* weights;
  T* y;

  SINTER_WORD index_t numel() const { return bags.count * table.columns; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      index_t c = i;
      const index_t b = by_columns(c);
      C sum = 0;
      for (index_t p = bags.begin(b); p < bags.begin(b + 1); ++p) {
        const index_t id = bags.ids[p];
        if (id == padding || !table.has(id)) continue;
        const C x = static_cast<C>(table.at(id, c));
        sum += weights != nullptr ? x * static_cast<C>(weights[p]) : x;
      }
      y[i] = static_cast<T>(sum / divisor_of_bag<C>(bags, b, mean, padding));
    });
  }
};

/// y[b] = the largest elements of the rows in bag b, NaN where there is one, and, unless `places` is null, where they
/// stand among the ids.
template <class T>
struct max_of_bags_body {
  using C = compute_type<T>;
  ops::id_bags bags;
  index_t padding;
  table_view<T> table;
  splitter by_columns;
  T* y;
  std::int32_t* places;

  SINTER_WORD index_t numel() const { return bags.count * table.columns; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      index_t c = i, place = -1;
      const index_t b = by_columns(c);
      C most = 0;
      for (index_t p = bags.begin(b); p < bags.begin(b + 1); ++p) {
        const index_t id = bags.ids[p];
        if (id == padding || !table.has(id)) continue;
        const C x = static_cast<C>(table.at(id, c));
        if (place >= 0 && !(x > most) && x == x) continue;
        most = x;
        place = p;
      }
      y[i] = static_cast<T>(most);
      if (places != nullptr) places[i] = static_cast<std::int32_t>(place);
    });
  }
};

/// What backward asks of the places: the bag of each, and its id, -1 where it is in no bag.
struct bag_places_body {
  ops::id_bags bags;
  std::uint32_t* bag;
  std::int64_t* ids;

  SINTER_WORD index_t numel() const { return bags.n; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t p) {
      const index_t b = bags.bag_of(p);
      bag[p] = static_cast<std::uint32_t>(b < 0 ? 0 : b);
      ids[p] = b < 0 ? -1 : bags.ids[p];
    });
  }
};
template <class C>
struct bag_divisors_body {
  ops::id_bags bags;
  index_t padding;
  C* divisor;

  SINTER_WORD index_t numel() const { return bags.count; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t b) { divisor[b] = divisor_of_bag<C>(bags, b, true, padding); });
  }
};

/// What a place gives to the gradient of its row: g of its bag, times the weight, divided by the divisor, where these
/// are not null; of a maximum only where it was at this place.
template <class T>
struct bag_term {
  using C = compute_type<T>;
  const T* g;
  index_t columns;
  const std::uint32_t* bag;
  const C* divisor;
  const T* weights;
  const std::int32_t* places;

  SINTER_WORD C operator()(index_t p, index_t c) const {
    const auto b = static_cast<index_t>(bag[p]);
    if (places != nullptr && places[b * columns + c] != p) return C(0);
    C x = static_cast<C>(g[b * columns + c]);
    if (divisor != nullptr) x /= divisor[b];
    return weights != nullptr ? x * static_cast<C>(weights[p]) : x;
  }
};

/// d weight[p] (+)= the sum of g of its bag times its row.
template <class T>
struct reverse_weights_body {
  using C = compute_type<T>;
  const std::uint32_t* bag;
  const std::int64_t* ids;
  index_t n, padding;
  table_view<T> table;
  const T* g;
  T* dw;
  bool add;

  SINTER_WORD index_t numel() const { return n; }
  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    each_element(grid, numel(), [&](index_t p) {
      C sum = 0;
      const index_t id = ids[p];
      if (id != padding && table.has(id))
        for (index_t c = 0; c < table.columns; ++c)
          sum += static_cast<C>(g[static_cast<index_t>(bag[p]) * table.columns + c]) * static_cast<C>(table.at(id, c));
      put_or_add(dw[p], sum, add);
    });
  }
};

template <device D, class Body>
void run_on_bags(const char* what, const Body& body) {
  const index_t n = body.numel();
  if (n > 0) launch_on<D>({what, &n, 1}, body, {blocks_for(n, block_threads), 0});
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <std::derived_from<ops::bag_op> Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> {
  using list = tensor<std::int64_t, 1, D>;

  template <class T, class Epilogue>
  static tensor<std::int32_t, 2, D> forward(const Op& op, const tensor<T, 2, D>& y, const Epilogue*,
                                            const tensor<T, 2, D>& table, const list& packed) {
    tensor<std::int32_t, 2, D> places;
    if (op.mode != bag_mode::max) {
      sum<T>(op, y, table, nullptr, packed);
    } else {
      if (recording()) places = tensor<std::int32_t, 2, D>::uninitialized(y.shape());
      const auto rows = cuda_impl::view_of_table(table);
      cuda_impl::run_on_bags<D>(op.name, cuda_impl::max_of_bags_body<T>{bags_in(op, packed), op.padding, rows,
                                                                        cuda_impl::splitter(rows.columns, y.numel()),
                                                                        access::data(y), access::data(places)});
    }
    return places;
  }
  template <class T, int R, class Epilogue>
  static nothing_saved forward(const Op& op, const tensor<T, 2, D>& y, const Epilogue*, const tensor<T, 2, D>& table,
                               const tensor<T, R, D>& weights, const list& packed) {
    sum<T>(op, y, table, access::data(weights), packed);
    return {};
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    using T = typename Backward::value_type;
    using C = compute_type<T>;
    constexpr bool is_weighted = Backward::differentiable == 2;
    constexpr const char* what = "backward of embedding_bag";
    const ops::id_bags bags = bags_in(op, b.template operand<is_weighted ? 2 : 1>());
    const list ids = list::uninitialized({{bags.n}});
    const temporary<D> bag_memory(static_cast<std::size_t>(bags.n) * sizeof(std::uint32_t));
    auto* const bag = static_cast<std::uint32_t*>(bag_memory.data());
    cuda_impl::run_on_bags<D>(what, cuda_impl::bag_places_body{bags, bag, access::data(ids)});
    const T* const g = access::data(b.gradient());
    if (b.template wants<0>()) {
      const temporary<D> divisors(op.mode == bag_mode::mean ? static_cast<std::size_t>(bags.count) * sizeof(C) : 0);
      auto* const divisor = static_cast<C*>(divisors.data());
      if (divisor != nullptr)
        cuda_impl::run_on_bags<D>(what, cuda_impl::bag_divisors_body<C>{bags, op.padding, divisor});
      cuda_impl::bag_term<T> term{g, b.gradient().shape()[1], bag, divisor, nullptr, nullptr};
      if constexpr (is_weighted) term.weights = access::data(b.template operand<1>());
      else if (op.mode == bag_mode::max) term.places = access::data(b.saved);
      cuda_impl::give_sums_at_ids(what, b, access::data(ids), bags.n, op.padding, op.by_frequency, term);
    }
    if constexpr (is_weighted) {
      if (!b.template wants<1>()) return;
      const auto place = b.template place_of<1>();
      cuda_impl::run_on_bags<D>(what,
                                cuda_impl::reverse_weights_body<T>{bag, access::data(ids), bags.n, op.padding,
                                                                   cuda_impl::view_of_table(b.template operand<0>()), g,
                                                                   access::data(place.to), place.add});
    }
  }

 private:
  static ops::id_bags bags_in(const Op& op, const list& packed) {
    return op.bags_in(access::data(packed), packed.numel());
  }
  template <class T>
  static void sum(const Op& op, const tensor<T, 2, D>& y, const tensor<T, 2, D>& table, const T* weights,
                  const list& packed) {
    const auto rows = cuda_impl::view_of_table(table);
    cuda_impl::run_on_bags<D>(
        op.name, cuda_impl::sum_bags_body<T>{bags_in(op, packed), op.padding, op.mode == bag_mode::mean, rows,
                                             cuda_impl::splitter(rows.columns, y.numel()), weights, access::data(y)});
  }
};

}  // namespace sinter::detail

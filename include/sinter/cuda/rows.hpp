// sinter/cuda/rows.hpp: the bodies of softmax, layer_norm and their relatives: the threads of a group share a row.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/cuda/backend.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter::cuda_impl {

/// f of neighbours of a row, number by number; see ops/row_op.hpp.
template <class F, class T, int lanes, class... V>
SINTER_WORD chunk<T, lanes> map_row(const F& f, chunk<T, lanes> x, const V&... more) {
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) x.value[i] = f(x.value[i], more.value[i]...);
  return x;
}

/// Values, or what the thread has kept of them.
template <class T, int lanes, class V>
struct kept_values {
  bool is_kept;
  const chunk<T, lanes>* kept;
  V v;
  SINTER_WORD chunk<T, lanes> operator()(int c, int valid) const { return is_kept ? kept[c] : v(c, valid); }
};

using ops::last_step;
using ops::over;
using ops::row_shift;
using ops::shifted_sum;
using sinter::detail::access;
using sinter::detail::bare;

/// One thread's view of its row, which it takes in chunks in turn with the other threads of the group: keep(), fold()
/// and each() go over the row. A row that is out of range takes part in the meetings and touches no memory.
template <class T, int lanes, class G>
struct row_team {
  const G& g;
  T* states;
  bool keeps;             ///< there is room for the values of a row; they may take too much
  chunk<T, lanes>* room;  ///< for that, several times; a thread touches its own chunks only
  index_t n;
  int chunks, in_last;  ///< chunks of the row, and valid elements of the last one
  int group, place;

  SINTER_WORD int valid(int c) const { return c + 1 < chunks ? lanes : in_last; }

  /// v, evaluated now where there is room: it may be made of what was kept in the same room before. Values that lie in
  /// memory as they are kept are asked for all at once, and may still be on their way.
  template <class V>
  SINTER_WORD kept_values<T, lanes, V> keep(const V& v, int number = 0) const {
    if (!keeps) return {false, room, v};
    chunk<T, lanes>* const to = room + number * chunks;
    int c = place;
    if constexpr (requires { v.in_memory_at(0); }) {
      for (; v.whole && c < chunks && valid(c) == lanes; c += group) {
        keep_loop(c);
        g.copy_ahead(to + c, v.in_memory_at(c));
      }
    } else {
      g.finish_copies();
    }
    for (; c < chunks; c += group) {
      keep_loop(c);
      to[c] = v(c, valid(c));
    }
    return {true, to, v};
  }

  /// combine over all values of the row, the same for every thread.
  template <class Combine, class V>
  SINTER_WORD T fold(T identity, const Combine& combine, const V& v) const {
    T s = identity;
    g.finish_copies();
    for (int c = place; c < chunks; c += group) {
      keep_loop(c);
      const int there = valid(c);
      const chunk<T, lanes> x = v(c, there);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) s = i < there ? combine(s, x.value[i]) : s;
    }
    return together(s, combine);
  }
  /// combine over what the threads have, the same for every one.
  template <class Combine>
  SINTER_WORD T together(T s, const Combine& combine) const {
    g.sync();
    states[g.thread()] = s;
    for (int step = group / 2; step > 0; step /= 2) {
      g.sync();
      if (place < step) states[g.thread()] = combine(states[g.thread()], states[g.thread() + step]);
    }
    g.sync();
    return states[g.thread() - place];
  }
  template <class V>
  SINTER_WORD T sum(const V& v) const {
    return fold(T(0), [](T a, T b) { return a + b; }, v);
  }
  template <class V>
  SINTER_WORD T max(const V& v) const {
    return fold(-std::numeric_limits<T>::infinity(), [](T a, T b) { return math::max(a, b); }, v);
  }
  /// The largest of the values, as row_shift() has it, and the sum of exp(v - that), in one pass: a larger value
  /// rescales the sum so far. Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018.
  template <class V>
  SINTER_WORD shifted_sum<T> sum_of_exp(const V& v) const {
    T most = -std::numeric_limits<T>::infinity(), s = 0;
    for (int c = place; c < chunks; c += group) {
      keep_loop(c);
      const int there = valid(c);
      const chunk<T, lanes> x = v(c, there);
      T larger = most;
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) larger = i < there ? math::max(larger, x.value[i]) : larger;
      const T shift = row_shift(larger);
      s *= math::exp(most - shift);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) s += i < there ? math::exp(x.value[i] - shift) : T(0);
      most = larger;
    }
    const T shift = row_shift(together(most, [](T a, T b) { return math::max(a, b); }));
    return {shift, together(s * math::exp(most - shift), [](T a, T b) { return a + b; })};
  }
  /// f(first, valid, chunk) for all chunks, of which `first` is the first column.
  template <class V, class F>
  SINTER_WORD void each(const V& v, const F& f) const {
    g.finish_copies();
    for (int c = place; c < chunks; c += group) {
      keep_loop(c);
      f(index_t{c} * lanes, valid(c), v(c, valid(c)));
    }
  }
};

/// Of a row of which nothing can be kept, one pass over memory less.
template <class C, class Team, class V>
SINTER_WORD shifted_sum<C> sum_of_exp(const Team& team, const V& v) {
  if (!team.keeps) return team.sum_of_exp(v);
  const C shift = row_shift(team.max(v));
  return {shift, team.sum(over(v, [=](C a) { return math::exp(a - shift); }))};
}

/// What the formulas of ops/row_op.hpp read of a row, in both directions. `Number` is the type of its sums.
template <class Team, class Number>
struct row_of_team {
  using value_type = Number;
  static constexpr bool always_keeps = false;
  const Team& team;

  SINTER_WORD bool keeps() const { return team.keeps; }
  SINTER_WORD Number count() const { return static_cast<Number>(team.n); }
  template <class V>
  SINTER_WORD Number sum(const V& v) const {
    return team.sum(v);
  }
  template <class V>
  SINTER_WORD Number max(const V& v) const {
    return team.max(v);
  }
  SINTER_WORD bool any_row(bool is) const { return team.g.any(is); }
};

/// One row of a forward pass; X: its values, Put: where the result goes.
template <class Team, class X, class Put, class Number>
struct forward_row : row_of_team<Team, Number> {
  const X& values;
  const Put& store;
  Number* of_row;  ///< what backward asks of this row; null for none

  template <class V>
  using kept = decltype(std::declval<const Team&>().keep(std::declval<const V&>()));

  SINTER_WORD const X& x() const { return values; }
  template <class V>
  SINTER_WORD kept<V> keep(const V& v) const {
    return this->team.keep(v);
  }
  /// Read anew by every thread: no other has to be waited for.
  template <class V>
  SINTER_WORD Number first(const V&) const {
    return values(0, this->team.valid(0)).value[0];
  }
  template <class V>
  SINTER_WORD ops::values_and_sum<kept<V>, Number> keep_and_sum(const V& v) const {
    const auto values_kept = this->team.keep(v);
    return {values_kept, this->team.sum(values_kept)};
  }
  template <class V>
  SINTER_WORD shifted_sum<Number> sum_of_exp(const V& v) const {
    return cuda_impl::sum_of_exp<Number>(this->team, v);
  }
  template <class V>
  SINTER_WORD void finish(const V& v, last_step<Number> end) const {
    this->team.each(over(v, [=](Number a) { return (a - end.shift) * end.scale - end.rest; }), store);
  }
  SINTER_WORD void save(Number c) const {
    if (this->team.place == 0 && of_row != nullptr) *of_row = c;
  }
};

/// One row of a backward pass; Y: its results and their gradients, Put: where the gradient of the operand goes.
template <class Team, class Y, class Put, class Number>
struct reverse_row : row_of_team<Team, Number> {
  const Y &y, &g;
  const Number* of_row;
  const Put& store;

  SINTER_WORD const Y& result() const { return y; }
  SINTER_WORD const Y& gradient() const { return g; }
  SINTER_WORD Number saved() const { return *of_row; }
  template <class V>
  SINTER_WORD void put(const V& v) const {
    this->team.each(v, store);
  }
};

/// Rows of n values of type T, `group` threads to each, which take `lanes` neighbours at a time; derived bodies say
/// what is done with a row.
template <class T, int Lanes, int Leaves = 1>
struct row_groups {
  static constexpr int lanes = Lanes;
  /// On a multiprocessor: some read while others compute. Fewer where all would not have registers enough.
  static constexpr bool wide = lanes > 4 || sizeof(T) > 4;
  static constexpr int blocks_at_once = Leaves > 8 || (Leaves > 4 && wide)   ? 1
                                        : (Leaves > 2 && wide) || Leaves > 4 ? 2
                                        : Leaves > 1 || wide                 ? 3
                                                                             : 4;
  /// Of a row, for each thread, where there are rows enough: 64 bytes on their way.
  static constexpr int usual_chunks = std::max(1, 64 / static_cast<int>(sizeof(T) * lanes));
  index_t rows = 0, n = 0;
  int chunks = 0, in_last = 0;  ///< of a row
  int group = 1;
  int rooms = 0;  ///< how many times a row is kept in shared memory

  row_groups(index_t count, index_t length, int wanted_rooms) : rows(count), n(length) {
    const index_t in_row = (n + lanes - 1) / lanes;
    if (in_row > std::numeric_limits<int>::max() - block_threads)
      sinter::detail::refuse<shape_error>(
          {"a row of ", n, " elements is too long for a GPU's row-wise kernels; the limit is 2^31 chunks of ", lanes});
    chunks = static_cast<int>(in_row);
    in_last = static_cast<int>(n - (in_row - 1) * lanes);
    const auto takes = [this](int each) { return group < block_threads && index_t{group} * each * lanes < n; };
    while (takes(usual_chunks) || (takes(1) && rows * group < enough_blocks * block_threads)) group *= 2;
    constexpr index_t most_kept = 44 * 1024;  // with the states within what every kernel has
    if (wanted_rooms * room() <= most_kept / static_cast<index_t>(sizeof(T)) / together()) rooms = wanted_rooms;
  }
  SINTER_WORD int together() const { return block_threads / group; }
  /// What a row takes in shared memory, in elements.
  SINTER_WORD index_t room() const { return index_t{chunks} * lanes; }
  launch_shape launch() const {
    return {blocks_for(rows, together()),
            sizeof(T) * static_cast<std::size_t>(block_threads + together() * rooms * room())};
  }

  /// f(row, team, true) for every row. A team without a row left gets f(row, team, false), with a team of no chunks.
  template <class G, class F>
  SINTER_WORD void each_row(const G& g, const F& f) const {
    T* const states = g.template shared<T>();
    auto* const kept = reinterpret_cast<chunk<T, lanes>*>(states + block_threads + g.thread() / group * rooms * room());
    for (index_t first = g.block() * together(); first < rows; first += g.blocks() * together()) {
      const index_t row = first + g.thread() / group;
      f(row < rows ? row : rows - 1,
        row_team<T, lanes, G>{g, states, rooms > 0, kept, n, row < rows ? chunks : 0, in_last, group,
                              g.thread() % group},
        row < rows);
    }
  }
};

/// Is K a tensor whose elements are kept as they lie in memory?
template <class K>
inline constexpr bool lies_as_kept = false;
template <class T>
inline constexpr bool lies_as_kept<sinter::detail::kernel::leaf<T, false>> = std::is_same_v<T, compute_type<T>>;

/// Values of a row of a source.
template <int lanes, class Source>
struct source_row {
  const Source& source;
  typename Source::row row;
  bool whole = source.by_rows;

  SINTER_WORD source_row(const Source& from, index_t first) : source(from), row(from.row_at(first)) {}
  SINTER_WORD auto operator()(int c, int valid) const {
    return source.template chunk_in<lanes>(row, index_t{c} * lanes, valid);
  }
  SINTER_WORD auto* in_memory_at(int c) const
    requires lies_as_kept<typename Source::formula>
  {
    using T = typename Source::formula::value_type;
    return reinterpret_cast<const chunk<T, lanes>*>(reinterpret_cast<const T*>(source.in.data[0]) + row.at.at[0]) + c;
  }
};

template <class T>
inline constexpr int row_lanes = narrow_element<T> ? 8 : 4;

/// Put: store_elements or finish_elements.
template <class Op, class Source, class T, class Put>
struct rows_body : row_groups<compute_type<T>, row_lanes<T>, Source::leaves + Put::leaves> {
  using C = compute_type<T>;
  Source source;
  Op op;
  Put put;
  C* saved;

  rows_body(const Source& x, const Op& what, const Put& p, C* s, index_t count, index_t length)
      : row_groups<C, row_lanes<T>, Source::leaves + Put::leaves>(count, length, 1),
        source(x.in_rows(row_lanes<T>, count, length)),
        op(what),
        put(p),
        saved(s) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      const index_t first = row * this->n;
      const source_row<row_lanes<T>, Source> values(source, first);
      const auto store = put.row_at(first);
      C* const of_row = there && saved != nullptr ? saved + row : static_cast<C*>(nullptr);
      op.forward(forward_row<bare<decltype(team)>, bare<decltype(values)>, bare<decltype(store)>, C>{
          {team}, values, store, of_row});
    });
  }
};

/// Values of a row in memory.
template <class T>
struct memory_row {
  const T* data;
  bool whole;
  SINTER_WORD auto operator()(int c, int valid) const {
    constexpr int lanes = row_lanes<T>;
    const chunk<T, lanes> read =
        read_chunk<T, lanes>(data + index_t{c} * lanes, whole && valid == lanes, valid, sizeof(T));
    chunk<compute_type<T>, lanes> x;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) x.value[i] = static_cast<compute_type<T>>(read.value[i]);
    return x;
  }
  SINTER_WORD const chunk<T, row_lanes<T>>* in_memory_at(int c) const
    requires std::is_same_v<T, compute_type<T>>
  {
    return reinterpret_cast<const chunk<T, row_lanes<T>>*>(data) + c;
  }
};

// The rows of a team of threads; of the grid, protocols ask nothing.
using any_row_team = row_team<float, row_lanes<float>, int>;
static_assert(ops::is_forward_row<forward_row<any_row_team, memory_row<float>, int, float>> &&
              ops::is_reverse_row<reverse_row<any_row_team, memory_row<float>, int, float>>);

template <class Op, class T>
struct reverse_rows_body : row_groups<compute_type<T>, row_lanes<T>> {
  using C = compute_type<T>;
  static constexpr int lanes = row_lanes<T>;
  Op op;
  const T* y;
  const T* g_of_y;
  const C* saved;
  T* dx;
  bool add;
  bool whole;

  reverse_rows_body(const Op& what, const T* result, const T* gradient, const C* s, T* to, index_t count,
                    index_t length, bool adds)
      : row_groups<C, lanes>(count, length, 2), op(what), y(result), g_of_y(gradient), saved(s), dx(to), add(adds) {
    const auto bits = reinterpret_cast<std::uintptr_t>(y) | reinterpret_cast<std::uintptr_t>(g_of_y) |
                      reinterpret_cast<std::uintptr_t>(dx);
    whole = bits % 16 == 0 && (count == 1 || length % lanes == 0);
  }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool) {
      const index_t first = row * this->n;
      const memory_row<T> result{y + first, whole}, gradient{g_of_y + first, whole};
      T* const to = dx + first;
      const auto kept_result = team.keep(result, 0), kept_gradient = team.keep(gradient, 1);
      const auto store = [&](index_t column, int valid, const auto& d) {
        write_chunk<T, lanes>(to + column, whole && valid == lanes, valid, sizeof(T), add, d);
      };
      op.reverse(reverse_row<bare<decltype(team)>, bare<decltype(kept_result)>, bare<decltype(store)>, C>{
          {team}, kept_result, kept_gradient, saved != nullptr ? saved + row : nullptr, store});
    });
  }
};

/// See row_kernels in ops/row_op.hpp.
template <device D>
struct row_passes {
  template <class Op, class E, class T, auto S, class Epilogue>
  static void rows(const Op& op, index_t n, const E& e, const tensor<T, S, D>& to,
                   const tensor<compute_type<T>, 1, D>& saved, const Epilogue* after) {
    if (to.numel() == 0) return;
    const index_t count = to.numel() / n;
    const store_elements<T> store(access::data(to), row_lanes<T>, count, n);
    const auto run = [&](const auto& put) {
      const rows_body<Op, source_for<E>, T, bare<decltype(put)>> body(source_of(e), op, put, access::data(saved), count,
                                                                      n);
      launch_on<D>({Op::name, to.shape()}, body, body.launch());
    };
    if constexpr (requires { after->finish(store, row_lanes<T>, count, n); })
      run(after->finish(store, row_lanes<T>, count, n));
    else run(store);
  }
  template <class Op, class T, auto S>
  static void reverse_rows(const Op& op, index_t n, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                           const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    if (y.numel() == 0) return;
    const reverse_rows_body<Op, T> body(op, access::data(y), access::data(g), access::data(saved), access::data(dx),
                                        y.numel() / n, n, add);
    launch_on<D>({Op::name, y.shape()}, body, body.launch());
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <std::derived_from<ops::row_op> Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> : row_kernels<Op, D, cuda_impl::row_passes<D>> {};

}  // namespace sinter::detail

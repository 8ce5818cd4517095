// sinter/cuda/element.hpp: the values of an expression, one by one or in chunks, for kernels that fold rows or columns
// of it.
#pragma once

#include "sinter/cuda/chunk.hpp"

namespace sinter::cuda_impl {

/// Neighbours that are read together of leaves with elements T: 16 bytes of float, and of half.
template <class Types>
inline constexpr int chunk_lanes = 4;
template <class... T>
  requires(sizeof...(T) > 0)
inline constexpr int chunk_lanes<type_list<T...>> = ((sizeof(T) == 2) && ...) ? 8 : 4;

/// Where the leaves of an expression of at most Most outer axes lie.
template <int N, int Most>
struct element_places {
  index_space<Most> space;
  operand_table<N, Most> in;
  bool straight = false;  ///< chunks of rows lie in one row of the space each
  bool dense = false;     ///< leaves are flat arrays like the space, which whole chunks are read of at once
  bool by_rows =
      false;  ///< the rows lie in one row of the space each, and whole chunks of them are read of all leaves at once
  std::uint64_t whole = 0;   ///< leaves that whole chunks are read of at once, a bit for each
  std::uint64_t unread = 0;  ///< leaves that chunks do without

  struct numbers {
    index_t at[operand_table<N, Most>::size];
  };
  /// The places of element `number`, in row-major order, in each leaf.
  SINTER_WORD numbers find(index_t number) const {
    numbers n{};
    index_t column = number;
    if (space.rows > 1) {
      const index_t row = quotient(number, space.inner, space.by_inner, space.narrow_elements);
      column = number - row * space.inner;
      add_row(space, in, row, n.at);
    }
    for (int s = 0; s < N; ++s) n.at[s] += column * in.step[s];
    return n;
  }

  /// To be read in chunks, of elements of those sizes, that begin at multiples of `lanes` in rows of n elements.
  void set_rows(const int* size, int lanes, index_t rows, index_t n) {
    straight = space.rows == 1 || (n > 0 && space.inner % n == 0) || space.inner % lanes == 0;
    const bool in_step = straight && (rows == 1 || n % lanes == 0) && (space.rows == 1 || space.inner % lanes == 0);
    whole = 0;
    dense = in_step && space.rows == 1;
    by_rows = in_step && (space.rows == 1 || (n > 0 && space.inner % n == 0));
    for (int s = 0; s < N; ++s) {
      const auto alignment = static_cast<std::uintptr_t>(std::min(size[s] * lanes, 16));
      bool together = in_step && in.step[s] == 1 && reinterpret_cast<std::uintptr_t>(in.data[s]) % alignment == 0;
      for (int d = 0; d < space.outer_axes; ++d) together = together && in.stride[s][d] % lanes == 0;
      whole |= std::uint64_t{together} << s;
      dense = dense && together;
      by_rows = by_rows && (together || (unread >> s & 1) != 0);
    }
  }
};

/// f(s, p) for each leaf of elements T that is read, p being the place in leaf s.
template <class... T, class Places, class F>
SINTER_WORD void each_leaf(type_list<T...>, const Places& from, const typename Places::numbers& n, const F& f) {
  int s = 0;
  const auto one = [&]<class U>() SINTER_INLINE_LAMBDA {
    if ((from.unread >> s & 1) == 0) f(s, reinterpret_cast<const U*>(from.in.data[s]) + n.at[s]);
    ++s;
  };
  (one.template operator()<T>(), ...);
}
/// Reads a chunk of each leaf, from element `number` on.
template <int lanes, class Types, class Places>
SINTER_WORD held<Types, lanes> read_elements(const Places& from, index_t number, int valid) {
  held<Types, lanes> to{};
  auto n = from.find(number);
  if (from.straight) {
    each_leaf(Types{}, from, n, [&]<class U>(int s, const U* p) SINTER_INLINE_LAMBDA {
      const chunk<U, lanes> c = read_chunk<U, lanes>(p, valid == lanes && (from.whole >> s & 1) != 0, valid,
                                                     from.in.step[s] * index_t{sizeof(U)});
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) to.set(s, i, c.value[i]);
    });
    return to;
  }
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) {
    if (i >= valid) continue;
    if (i > 0) n = from.find(number + i);
    each_leaf(Types{}, from, n, [&](int s, const auto* p) SINTER_INLINE_LAMBDA { to.set(s, i, *in_memory(p)); });
  }
  return to;
}
/// The same as a function that kernels share; what it reads is handed over in registers, if it is not too much.
template <int lanes, class Types, class Places>
SINTER_WORD_NOINLINE held<Types, lanes> read_elements_out_of_line(const Places& from, index_t number, int valid) {
  return read_elements<lanes, Types>(from, number, valid);
}
/// Whole chunks of all leaves, `ahead` of those places: nothing waits for what is read before it is used.
template <int lanes, class Types, class Places>
SINTER_WORD held<Types, lanes> read_whole(const Places& from, typename Places::numbers n, index_t ahead) {
  held<Types, lanes> to{};
  for (index_t& at : n.at) at += ahead;
  each_leaf(Types{}, from, n, [&]<class U>(int s, const U* p) SINTER_INLINE_LAMBDA {
    const chunk<U, lanes> c = read_chunk<U, lanes>(p, true, lanes, 0);
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) to.set(s, i, c.value[i]);
  });
  return to;
}

/// Registers in which a thread holds a chunk while it works on another, at most.
inline constexpr int most_read_ahead = 20;

/// The machine of expr/kernel.hpp at one lane of what a thread holds of all leaves.
template <class Types, int lanes>
struct chunk_machine {
  held<Types, lanes> read;
  index_t first;
  int lane = 0;

  template <int S, class T>
  SINTER_WORD compute_type<T> load() const {
    return read.template get<T>(S, lane);
  }
  template <class T>
  SINTER_WORD compute_type<T> literal(compute_type<T> x) const {
    return x;
  }
  SINTER_WORD index_t index() const { return first + lane; }
};

/// An expression K and where its leaves lie; any thread may ask for any elements.
template <class K, int Most>
struct element_source : element_places<K::leaves, Most> {
  using places = element_places<K::leaves, Most>;
  using formula = K;
  using leaf_types = typename K::leaf_types;
  static constexpr int leaves = K::leaves;
  static constexpr int usual_lanes = chunk_lanes<leaf_types>;
  /// Blocks at a time for kernels that fold it: with many operands one, so that a thread has all its registers.
  static constexpr int blocks_at_once = held<leaf_types, usual_lanes>::registers > (usual_lanes > 4 ? 12 : 28) ? 1 : 2;

  K plan;

  element_source(const K& k, const pass_axes& axes)
      : places{axes.template space<Most>(), axes.template table<leaves, Most>(0)}, plan(k) {}

  /// To be asked for chunks of so many lanes that begin at multiples of that in rows of n elements.
  element_source in_rows(int lanes, index_t rows, index_t n) const {
    element_source s = *this;
    s.set_rows(sizes(leaf_types{}).of, lanes, rows, n);
    return s;
  }

  struct machine {
    const element_source& source;
    index_t number;
    typename places::numbers places_in;

    template <int S, class T>
    SINTER_WORD compute_type<T> load() const {
      return reinterpret_cast<const T*>(source.in.data[S])[places_in.at[S]];
    }
    template <class T>
    SINTER_WORD compute_type<T> literal(compute_type<T> x) const {
      return x;
    }
    SINTER_WORD index_t index() const { return number; }
  };

  /// Element `number` in row-major order of the space.
  SINTER_WORD auto operator()(index_t number) const { return value(machine{*this, number, this->find(number)}); }

  /// Where a row begins, by its first element.
  struct row {
    index_t first;
    typename places::numbers at;
  };
  SINTER_WORD row row_at(index_t first) const { return {first, this->find(first)}; }

  /// The machine for `valid` elements of a row from `column` on.
  template <int lanes>
  SINTER_WORD chunk_machine<leaf_types, lanes> machine_in(const row& r, index_t column, int valid) const {
    chunk_machine<leaf_types, lanes> m{{}, r.first + column};
    if constexpr (K::leaves > 0) {
      if (this->by_rows && valid == lanes) m.read = read_whole<lanes, leaf_types, places>(*this, r.at, column);
      else m.read = read_anyhow<lanes>(r.first + column, valid);
    }
    return m;
  }
  /// Those elements.
  template <int lanes>
  SINTER_WORD auto chunk_in(const row& r, index_t column, int valid) const {
    return chunk_of(machine_in<lanes>(r, column, valid));
  }
  template <int lanes>
  SINTER_WORD auto chunk_of(chunk_machine<leaf_types, lanes> m) const {
    chunk<decltype(value(m)), lanes> x;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) {
      m.lane = i;
      x.value[i] = value(m);
    }
    return x;
  }

  /// Calls f(chunk, number, valid) for a chunk at `number` and, if any of it is valid, one at `second`.
  template <int lanes, class F>
  SINTER_WORD void two_chunks(index_t number, int valid, index_t second, int second_valid, const F& f) const {
    using inputs = held<leaf_types, lanes>;
    constexpr bool reads_ahead = K::leaves > 0 && inputs::registers <= most_read_ahead;
    chunk_machine<leaf_types, lanes> m{{}, number};
    inputs ahead{};
    if constexpr (reads_ahead) {
      if (this->dense && valid == lanes && second_valid == lanes) {
        m.read = read_whole<lanes, leaf_types, places>(*this, {}, number);
        ahead = read_whole<lanes, leaf_types, places>(*this, {}, second);
      } else {
        m.read = read_anyhow<lanes>(number, valid);
        if (second_valid > 0) ahead = read_anyhow<lanes>(second, second_valid);
      }
    }
    const int count = second_valid > 0 ? 2 : 1;
    for (int k = 0; k < count; ++k) {
      keep_loop(k);  // the formula is there once
      const index_t at = k == 0 ? number : second;
      const int of_it = k == 0 ? valid : second_valid;
      if constexpr (K::leaves > 0 && !reads_ahead)
        m.read = this->dense && of_it == lanes ? read_whole<lanes, leaf_types, places>(*this, {}, at)
                                               : read_anyhow<lanes>(at, of_it);
      f(chunk_of(m), at, of_it);
      m = {ahead, second};
    }
  }

  /// What the plan makes of the element that a machine stands at.
  template <class Machine>
  SINTER_WORD auto value(const Machine& m) const {
    return plan.template eval<0>(m, sinter::detail::kernel::no_scope{});
  }

 private:
  template <int lanes>
  SINTER_WORD held<leaf_types, lanes> read_anyhow(index_t number, int valid) const {
    using inputs = held<leaf_types, lanes>;
    if constexpr (inputs::registers <= most_read_at_once)
      return read_elements_out_of_line<lanes, leaf_types, places>(*this, number, valid);
    else return read_elements<lanes, leaf_types, places>(*this, number, valid);
  }
  struct size_list {
    int of[std::size_t{leaves > 0 ? leaves : 1}];
  };
  template <class... T>
  static size_list sizes(type_list<T...>) {
    return {{static_cast<int>(sizeof(T))...}};
  }
};

/// Where chunks of the rows of a dense result go.
template <class T>
struct store_elements {
  static constexpr int leaves = 0;  ///< that are read
  T* out;
  bool whole = false;  ///< in accesses of 16 bytes

  store_elements(T* to, int lanes, index_t rows, index_t n)
      : out(to), whole(reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && (rows == 1 || n % lanes == 0)) {}

  /// Writes chunks of a row.
  struct row {
    const store_elements& to;
    index_t first;
    template <int lanes>
    SINTER_WORD void operator()(index_t column, int valid, const chunk<compute_type<T>, lanes>& x) const {
      write_chunk<T, lanes>(to.out + first + column, to.whole && valid == lanes, valid, sizeof(T), false, x);
    }
  };
  SINTER_WORD row row_at(index_t first) const { return {*this, first}; }
};

/// A machine that is given the value of some leaves, a bit for each.
template <class Base, class T>
struct given_machine : Base {
  std::uint64_t given;
  compute_type<T> x;

  template <int S, class U>
  SINTER_WORD compute_type<U> load() const {
    if constexpr (std::is_same_v<U, T>) {
      if ((given >> S & 1) != 0) return x;
    }
    return Base::template load<S, U>();
  }
};

/// The same with elementwise work on the way: out = K, where the leaves that are not read are the elements themselves.
template <class T, class Source>
struct finish_elements : store_elements<T> {
  static constexpr int leaves = Source::leaves;
  Source rest;

  finish_elements(const store_elements<T>& to, const Source& source) : store_elements<T>(to), rest(source) {}

  struct row {
    const finish_elements& to;
    typename Source::row rest;
    template <int lanes>
    SINTER_WORD void operator()(index_t column, int valid, const chunk<compute_type<T>, lanes>& x) const {
      using base = chunk_machine<typename Source::leaf_types, lanes>;
      given_machine<base, T> m{to.rest.template machine_in<lanes>(rest, column, valid), to.rest.unread, {}};
      chunk<compute_type<T>, lanes> y;
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) {
        m.lane = i;
        m.x = x.value[i];
        y.value[i] = to.rest.value(m);
      }
      to.store_elements<T>::row_at(rest.first)(column, valid, y);
    }
  };
  SINTER_WORD row row_at(index_t first) const { return {*this, rest.row_at(first)}; }
};

/// Where single results go, in a dense tensor.
template <class T>
struct store_results {
  T* out;
  SINTER_WORD void operator()(index_t number, T x) const { out[number] = x; }
};
/// The same with elementwise work on the way.
template <class T, class Source>
struct finish_results {
  T* out;
  Source rest;

  SINTER_WORD void operator()(index_t number, T x) const {
    using base = typename Source::machine;
    out[number] = static_cast<T>(rest.value(
        given_machine<base, T>{{rest, number, rest.find(number)}, rest.unread, static_cast<compute_type<T>>(x)}));
  }
};

/// The source over axes, at most Axes of them, that hold K's leaves.
template <int Axes, class K>
element_source<K, outer_axes_of(Axes)> make_source(const K& plan, pass_axes axes) {
  axes.coalesce();
  return {plan, axes};
}

}  // namespace sinter::cuda_impl

// sinter/expr/kernel.hpp: the trivially copyable plan an expression is lowered to, and its forward and reverse sweeps.
//
// A plan holds no handle, device or rank: equal formulas on any device share code. Leaves are numbered by position, at
// compile time. A sweep runs on a machine M (CPU packets, CUDA threads, the test simulator), which supplies
//   M::load<Slot, T>()           the value of leaf Slot at the current element(s)
//   M::literal<T>(x)             x, a compute_type<T>, as a value
//   M::index()                   the row-major index of the current element, or
//   M::words<Each>()             its Each random words, where they are drawn for neighbours together
//   M::put<Out, T>(x)            makes x the value of result Out
//   M::accumulate<Sink, T>(g)    adds g to the gradient of tracked leaf number Sink
//   M::load_made<Slot, T>()      on the CPU: leaf Slot, the value of a row-wise op that the machine finishes itself
// Values of half and bfloat16 are float: load widens them, put and accumulate round. Where a sink's element_size is
// that of float, accumulate leaves out the rounding: sums of narrow elements are gathered so (grad/narrow.hpp).
#pragma once

#include <algorithm>
#include <tuple>

#include "sinter/expr/expression.hpp"
#include "sinter/math/inline.hpp"

namespace sinter {

/// What a derivative reads: bit I for operand I, and the op's own result. See docs/adding-an-op.md.
namespace uses {
inline constexpr unsigned nothing = 0, first = 1, second = 2, third = 4, fourth = 8, fifth = 16, result = 1u << 31;
}

namespace detail::kernel {

/// The elements of a gradient.
enum class gradient_format : unsigned char { float32, float64, half, bfloat16 };
template <class T>
inline constexpr gradient_format gradient_format_of = std::is_same_v<T, half>       ? gradient_format::half
                                                      : std::is_same_v<T, bfloat16> ? gradient_format::bfloat16
                                                      : std::is_same_v<T, double>   ? gradient_format::float64
                                                                                    : gradient_format::float32;
constexpr bool is_narrow(gradient_format f) { return f == gradient_format::half || f == gradient_format::bfloat16; }

/// Stands for a value that no derivative reads; using it does not compile.
struct unneeded {};
struct no_scope {};

template <class... T>
struct type_list {
  static constexpr int count = sizeof...(T);
  template <int I>
  using at = std::tuple_element_t<std::size_t{I}, std::tuple<T...>>;
};
template <class...>
struct concatenation;
template <class... T>
struct concatenation<type_list<T...>> {
  using type = type_list<T...>;
};
template <class... A, class... B, class... Rest>
struct concatenation<type_list<A...>, type_list<B...>, Rest...> : concatenation<type_list<A..., B...>, Rest...> {};
template <class... Lists>
using concatenated = typename concatenation<Lists...>::type;
template <bool There, class T>
using type_list_if = std::conditional_t<There, type_list<T>, type_list<>>;

/// A formula's `leaf_types` are the elements of its leaves, in slot order; its `sink_types` those of the tracked ones.
template <class T, bool Diff>
struct leaf {
  using value_type = T;
  using leaf_types = type_list<T>;
  using sink_types = type_list_if<Diff, T>;
  static constexpr int leaves = 1;
  static constexpr int sinks = Diff ? 1 : 0;
  static constexpr bool diff = Diff;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope&) const {
    return m.template load<L, T>();
  }

  template <class V>
  struct forward_values {
    V value;
  };
  template <int L, bool Need, class M, class Scope>
  SINTER_WORD auto forward(const M& m, const Scope& s) const {
    if constexpr (Need) return forward_values<decltype(eval<L>(m, s))>{eval<L>(m, s)};
    else return forward_values<unneeded>{};
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope&, const Rec&, const G& g) const {
    if constexpr (Diff) m.template accumulate<S, T>(g);
  }
  template <bool Need>
  static constexpr void mark(bool* needed) {
    needed[0] = Need;
  }
};

/// What a row-wise op has made, in elementwise work that follows it.
template <class T>
struct made : leaf<T, false> {
  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope&) const {
    return m.template load_made<L, T>();
  }
};

template <class T>
struct constant {
  using value_type = T;
  using leaf_types = type_list<>;
  using sink_types = type_list<>;
  static constexpr int leaves = 0;
  static constexpr int sinks = 0;
  static constexpr bool diff = false;
  compute_type<T> value;

  template <int, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope&) const {
    return m.template literal<T>(value);
  }
  template <class V>
  struct forward_values {
    V value;
  };
  template <int L, bool, class M, class Scope>
  SINTER_WORD auto forward(const M& m, const Scope& s) const {
    return forward_values<decltype(eval<L>(m, s))>{eval<L>(m, s)};
  }
  template <int, int, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M&, Scope&, const Rec&, const G&) const {}
  template <bool>
  static constexpr void mark(bool*) {}
};

/// Does the derivative of Op with respect to operand I read what `bit` names? Ops without derivative never ask.
template <class Op, int I>
constexpr unsigned uses_of() {
  if constexpr (requires { Op::grad_uses[I]; }) return Op::grad_uses[I];
  else return 0;
}

/// Does K ask a machine for the number of an element? A pass over it goes through the elements in their order.
template <class K>
inline constexpr bool counts = requires { K::words; };

template <class K>
inline constexpr bool is_leaf = false;
template <class T, bool Diff>
inline constexpr bool is_leaf<leaf<T, Diff>> = true;

/// Does the derivative at the root of K read the result of the whole statement? Then it is loaded, not recomputed.
template <class K>
inline constexpr bool reads_result = [] {
  if constexpr (requires { K::used; }) return (K::used & uses::result) != 0;
  else return false;
}();

template <class Op, class... K>
struct map;

template <class Op, class A>
struct map<Op, A> {
  using leaf_types = typename A::leaf_types;
  using sink_types = typename A::sink_types;
  static constexpr int leaves = A::leaves;
  static constexpr int sinks = A::sinks;
  static constexpr bool diff = A::diff;
  [[no_unique_address]] Op op;
  A a;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope& s) const {
    return op.apply(a.template eval<L>(m, s));
  }

  static constexpr unsigned used = A::diff ? uses_of<Op, 0>() : 0;
  template <bool Need, bool Given>
  static constexpr bool compute = (Need || (used & uses::result) != 0) && !Given;
  template <bool Need, bool Given>
  static constexpr bool need_a = compute<Need, Given> || (used & uses::first) != 0;

  template <class RA, class V>
  struct forward_values {
    RA a;
    V value;
  };
  template <int L, bool Need, class M, class Scope, class G = unneeded>
  SINTER_WORD auto forward(const M& m, const Scope& s, const G& given = {}) const {
    constexpr bool is_given = !std::is_same_v<G, unneeded>;
    auto ra = a.template forward<L, need_a<Need, is_given>>(m, s);
    if constexpr (compute<Need, is_given>)
      return forward_values<decltype(ra), decltype(op.apply(ra.value))>{ra, op.apply(ra.value)};
    else return forward_values<decltype(ra), G>{ra, given};
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope& s, const Rec& r, const G& g) const {
    if constexpr (diff) a.template reverse<L, S>(m, s, r.a, op.template grad<0>(g, r.a.value, r.value));
  }
  template <bool Need, bool Given = false>
  static constexpr void mark(bool* needed) {
    A::template mark<need_a<Need, Given>>(needed);
  }
};

template <class Op, class A, class B>
struct map<Op, A, B> {
  using leaf_types = concatenated<typename A::leaf_types, typename B::leaf_types>;
  using sink_types = concatenated<typename A::sink_types, typename B::sink_types>;
  static constexpr int leaves = A::leaves + B::leaves;
  static constexpr int sinks = A::sinks + B::sinks;
  static constexpr bool diff = A::diff || B::diff;
  [[no_unique_address]] Op op;
  A a;
  B b;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope& s) const {
    return op.apply(a.template eval<L>(m, s), b.template eval<L + A::leaves>(m, s));
  }

  static constexpr unsigned used = (A::diff ? uses_of<Op, 0>() : 0) | (B::diff ? uses_of<Op, 1>() : 0);
  template <bool Need, bool Given>
  static constexpr bool compute = (Need || (used & uses::result) != 0) && !Given;
  template <bool Need, bool Given>
  static constexpr bool need_a = compute<Need, Given> || (used & uses::first) != 0;
  template <bool Need, bool Given>
  static constexpr bool need_b = compute<Need, Given> || (used & uses::second) != 0;

  template <class RA, class RB, class V>
  struct forward_values {
    RA a;
    RB b;
    V value;
  };
  template <int L, bool Need, class M, class Scope, class G = unneeded>
  SINTER_WORD auto forward(const M& m, const Scope& s, const G& given = {}) const {
    constexpr bool is_given = !std::is_same_v<G, unneeded>;
    auto ra = a.template forward<L, need_a<Need, is_given>>(m, s);
    auto rb = b.template forward<L + A::leaves, need_b<Need, is_given>>(m, s);
    if constexpr (compute<Need, is_given>)
      return forward_values<decltype(ra), decltype(rb), decltype(op.apply(ra.value, rb.value))>{
          ra, rb, op.apply(ra.value, rb.value)};
    else return forward_values<decltype(ra), decltype(rb), G>{ra, rb, given};
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope& s, const Rec& r, const G& g) const {
    if constexpr (A::diff) a.template reverse<L, S>(m, s, r.a, op.template grad<0>(g, r.a.value, r.b.value, r.value));
    if constexpr (B::diff)
      b.template reverse<L + A::leaves, S + A::sinks>(m, s, r.b, op.template grad<1>(g, r.a.value, r.b.value, r.value));
  }
  template <bool Need, bool Given = false>
  static constexpr void mark(bool* needed) {
    A::template mark<need_a<Need, Given>>(needed);
    B::template mark<need_b<Need, Given>>(needed + A::leaves);
  }
};

template <class Op, class A, class B, class C>
struct map<Op, A, B, C> {
  using leaf_types = concatenated<typename A::leaf_types, typename B::leaf_types, typename C::leaf_types>;
  using sink_types = concatenated<typename A::sink_types, typename B::sink_types, typename C::sink_types>;
  static constexpr int leaves = A::leaves + B::leaves + C::leaves;
  static constexpr int sinks = A::sinks + B::sinks + C::sinks;
  static constexpr bool diff = A::diff || B::diff || C::diff;
  [[no_unique_address]] Op op;
  A a;
  B b;
  C c;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope& s) const {
    return op.apply(a.template eval<L>(m, s), b.template eval<L + A::leaves>(m, s),
                    c.template eval<L + A::leaves + B::leaves>(m, s));
  }

  static constexpr unsigned used =
      (A::diff ? uses_of<Op, 0>() : 0) | (B::diff ? uses_of<Op, 1>() : 0) | (C::diff ? uses_of<Op, 2>() : 0);
  template <bool Need, bool Given>
  static constexpr bool compute = (Need || (used & uses::result) != 0) && !Given;
  template <bool Need, bool Given, unsigned Bit>
  static constexpr bool need = compute<Need, Given> || (used & Bit) != 0;

  template <class RA, class RB, class RC, class V>
  struct forward_values {
    RA a;
    RB b;
    RC c;
    V value;
  };
  template <int L, bool Need, class M, class Scope, class G = unneeded>
  SINTER_WORD auto forward(const M& m, const Scope& s, const G& given = {}) const {
    constexpr bool is_given = !std::is_same_v<G, unneeded>;
    auto ra = a.template forward<L, need<Need, is_given, uses::first>>(m, s);
    auto rb = b.template forward<L + A::leaves, need<Need, is_given, uses::second>>(m, s);
    auto rc = c.template forward<L + A::leaves + B::leaves, need<Need, is_given, uses::third>>(m, s);
    if constexpr (compute<Need, is_given>)
      return forward_values<decltype(ra), decltype(rb), decltype(rc), decltype(op.apply(ra.value, rb.value, rc.value))>{
          ra, rb, rc, op.apply(ra.value, rb.value, rc.value)};
    else return forward_values<decltype(ra), decltype(rb), decltype(rc), G>{ra, rb, rc, given};
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope& s, const Rec& r, const G& g) const {
    if constexpr (A::diff)
      a.template reverse<L, S>(m, s, r.a, op.template grad<0>(g, r.a.value, r.b.value, r.c.value, r.value));
    if constexpr (B::diff)
      b.template reverse<L + A::leaves, S + A::sinks>(m, s, r.b,
                                                      op.template grad<1>(g, r.a.value, r.b.value, r.c.value, r.value));
    if constexpr (C::diff)
      c.template reverse<L + A::leaves + B::leaves, S + A::sinks + B::sinks>(
          m, s, r.c, op.template grad<2>(g, r.a.value, r.b.value, r.c.value, r.value));
  }
  template <bool Need, bool Given = false>
  static constexpr void mark(bool* needed) {
    A::template mark<need<Need, Given, uses::first>>(needed);
    B::template mark<need<Need, Given, uses::second>>(needed + A::leaves);
    C::template mark<need<Need, Given, uses::third>>(needed + A::leaves + B::leaves);
  }
};

constexpr std::uint64_t bits_below(int n) { return (std::uint64_t{1} << n) - 1; }

/// Which leaves the reverse sweep of K reads.
template <class K>
struct leaves_read {
  bool leaf[K::leaves > 0 ? K::leaves : 1] = {};
  constexpr leaves_read() {
    if constexpr (reads_result<K>) K::template mark<false, true>(leaf);
    else K::template mark<false>(leaf);
  }
  constexpr std::uint64_t bits() const {
    std::uint64_t all = 0;
    for (int l = 0; l < K::leaves; ++l) all |= static_cast<std::uint64_t>(leaf[l]) << l;
    return all;
  }
};

/// What a kernel does at each element: out = K. A pass says what elements its operands have (input_types,
/// output_types), and which inputs it reads at all, a bit for each (inputs_read).
template <class K, class T>
struct forward_pass {
  using plan_type = K;
  static constexpr int inputs = K::leaves, outputs = 1;
  static constexpr bool narrow = narrow_element<T>;  ///< what it writes has two bytes
  using input_types = typename K::leaf_types;
  using output_types = type_list<T>;
  static constexpr std::uint64_t inputs_read = bits_below(inputs);
  K k;
  template <class M>
  SINTER_WORD void operator()(const M& m) const {
    m.template put<0, T>(k.template eval<0>(m, no_scope{}));
  }
};

/// Several results in one pass; Roots is kernel::roots, or anything with its leaves, outputs, leaf_types, output_types
/// and run().
template <class Roots>
struct roots_pass {
  using plan_type = Roots;
  static constexpr int inputs = Roots::leaves, outputs = Roots::outputs;
  static constexpr bool narrow = [] {
    if constexpr (requires { Roots::narrow; }) return Roots::narrow;
    else return false;
  }();
  using input_types = typename Roots::leaf_types;
  using output_types = typename Roots::output_types;
  static constexpr std::uint64_t inputs_read = bits_below(inputs);
  Roots k;
  template <class M>
  SINTER_WORD void operator()(const M& m) const {
    k.template run<0, 0>(m);
  }
};

/// Inputs: the leaves, the gradient of the result, and the result where its op's derivative reads it. Outputs: the
/// gradients of the tracked leaves.
template <class K, class T>
struct reverse_pass {
  using plan_type = K;
  static constexpr int inputs = K::leaves + 1 + (reads_result<K> ? 1 : 0), outputs = K::sinks;
  static constexpr bool narrow = narrow_element<T>;
  static constexpr bool folds = true;  ///< sinks of broadcast leaves gather sums
  using sum_type = compute_type<T>;    ///< of few terms; more are added in double
  using input_types = concatenated<typename K::leaf_types, type_list<T>, type_list_if<reads_result<K>, T>>;
  using output_types = typename K::sink_types;
  static constexpr std::uint64_t inputs_read = leaves_read<K>().bits() | (bits_below(inputs) & ~bits_below(K::leaves));
  K k;
  template <class M>
  SINTER_WORD void operator()(const M& m) const {
    no_scope scope;
    const auto g = m.template load<K::leaves, T>();
    if constexpr (reads_result<K>) {
      const auto r = k.template forward<0, false>(m, scope, m.template load<K::leaves + 1, T>());
      k.template reverse<0, 0>(m, scope, r, g);
    } else {
      const auto r = k.template forward<0, false>(m, scope);
      k.template reverse<0, 0>(m, scope, r, g);
    }
  }
};

}  // namespace detail::kernel

namespace detail {

class state_ptr;  // grad/tape.hpp

/// The most that a pass may read, and the most that it may write.
inline constexpr int max_operands = 40;

/// The number of operands of a pass, checked.
template <int N>
inline constexpr int pass_of = [] {
  static_assert(N <= max_operands, "sinter: the statement has too many operands for one pass; split it in two");
  return N > 0 ? N : 1;
}();

/// A leaf of an expression, whatever its type: what a kernel has to know of it at run time.
struct leaf_ref {
  void* data = nullptr;
  const index_t* shape = nullptr;
  const index_t* strides = nullptr;  ///< in elements
  int rank = 0;
  int element_size = 0;
  // For code that inspects an expression before it runs, or records it; kernels do not use them.
  const storage_ptr* memory = nullptr;
  const state_ptr* state = nullptr;  ///< of a leaf that gradients flow to
};

/// Lowering of one expression type: `plan` builds the kernel tree, `list` writes the leaves of its operands in slot
/// order.
template <class E>
struct lowering;

/// Gradients flow through floating-point values only: below a comparison or an integer cast nothing is tracked.
template <bool Track, class E>
inline constexpr bool tracks = Track && floating_element<element_of<E>>;

template <bool Track, class E>
auto lower(const E& e) {
  return lowering<E>::template plan<tracks<Track, E>>(e);
}
template <bool Track, class E>
using lowered = decltype(lower<Track>(std::declval<const E&>()));

/// The elements of the gradients of K's tracked leaves.
template <class K>
struct gradient_formats {
  kernel::gradient_format of[K::sinks] = {};
  bool any_narrow = false, any_double = false;
  constexpr gradient_formats() {
    [this]<class... T>(kernel::type_list<T...>) {
      int s = 0;
      ((of[s++] = kernel::gradient_format_of<T>), ...);
    }(typename K::sink_types{});
    for (const auto format : of) {
      any_narrow = any_narrow || kernel::is_narrow(format);
      any_double = any_double || format == kernel::gradient_format::float64;
    }
  }
};

template <class E>
constexpr bool reverse_reads_leaf(int slot) {
  return kernel::leaves_read<lowered<true, E>>().leaf[slot];
}

/// The lowest rank among the leaves of E that gradients flow to.
template <class E>
constexpr int find_lowest_tracked_rank() {
  if constexpr (!tracks<true, E>) return max_rank;
  else if constexpr (is_variable<E>) return E::rank;
  else if constexpr (requires(const E& e) { e.c; })
    return std::min({find_lowest_tracked_rank<decltype(E::a)>(), find_lowest_tracked_rank<decltype(E::b)>(),
                     find_lowest_tracked_rank<decltype(E::c)>()});
  else if constexpr (requires(const E& e) { e.b; })
    return std::min(find_lowest_tracked_rank<decltype(E::a)>(), find_lowest_tracked_rank<decltype(E::b)>());
  else if constexpr (requires(const E& e) { e.a; }) return find_lowest_tracked_rank<decltype(E::a)>();
  else if constexpr (requires(const E& e) { e.body; })
    return std::min(find_lowest_tracked_rank<decltype(E::x)>(), find_lowest_tracked_rank<decltype(E::body)>());
  else if constexpr (requires(const E& e) { e.x; }) return find_lowest_tracked_rank<decltype(E::x)>();
  else return max_rank;
}
template <class E>
inline constexpr int lowest_tracked_rank = find_lowest_tracked_rank<E>();

template <class T, auto S, device D>
leaf_ref leaf_of(const tensor<T, S, D>& t) {
  return {access::data(t), t.shape().data(), t.strides().data(), t.rank, sizeof(T), &access::storage_of(t), nullptr};
}

/// Writes one leaf_ref per leaf to `to`, in slot order, and returns where the next would go. One walk for all purposes:
/// every formula instantiates it.
template <bool Track, class E>
leaf_ref* list_leaves(const E& e, leaf_ref* to) {
  if constexpr (is_tensor<E>) {
    *to = leaf_of(e);
    return to + 1;
  } else if constexpr (is_variable<E>) {
    *to = leaf_of(access::value_of(e));
    if constexpr (tracks<Track, E>) to->state = &access::state_of(e);
    return to + 1;
  } else {
    return lowering<E>::template list<tracks<Track, E>>(e, to);
  }
}

/// The leaves of an expression, in slot order. They refer to it.
template <class E>
struct leaves_of {
  static constexpr int count = lowered<false, E>::leaves;
  explicit leaves_of(const E& e) { list_leaves<true>(e, at); }
  operator const leaf_ref*() const { return at; }
  leaf_ref at[std::size_t{count > 0 ? count : 1}];
};

template <class T, auto S, device D>
struct lowering<tensor<T, S, D>> {
  template <bool>
  static kernel::leaf<T, false> plan(const tensor<T, S, D>&) {
    return {};
  }
};

template <class T>
struct lowering<constant_expr<T>> {
  template <bool>
  static kernel::constant<T> plan(const constant_expr<T>& e) {
    return {e.value};
  }
  template <bool>
  static leaf_ref* list(const constant_expr<T>&, leaf_ref* to) {
    return to;
  }
};

template <class Op, class A>
struct lowering<map_expr<Op, A>> {
  template <bool Track>
  static kernel::map<Op, lowered<Track, A>> plan(const map_expr<Op, A>& e) {
    return {e.op, lower<Track>(e.a)};
  }
  template <bool Track>
  static leaf_ref* list(const map_expr<Op, A>& e, leaf_ref* to) {
    return list_leaves<Track>(e.a, to);
  }
};

template <class Op, class A, class B>
struct lowering<map_expr<Op, A, B>> {
  template <bool Track>
  static kernel::map<Op, lowered<Track, A>, lowered<Track, B>> plan(const map_expr<Op, A, B>& e) {
    return {e.op, lower<Track>(e.a), lower<Track>(e.b)};
  }
  template <bool Track>
  static leaf_ref* list(const map_expr<Op, A, B>& e, leaf_ref* to) {
    return list_leaves<Track>(e.b, list_leaves<Track>(e.a, to));
  }
};

template <class Op, class A, class B, class C>
struct lowering<map_expr<Op, A, B, C>> {
  template <bool Track>
  static kernel::map<Op, lowered<Track, A>, lowered<Track, B>, lowered<Track, C>> plan(const map_expr<Op, A, B, C>& e) {
    return {e.op, lower<Track>(e.a), lower<Track>(e.b), lower<Track>(e.c)};
  }
  template <bool Track>
  static leaf_ref* list(const map_expr<Op, A, B, C>& e, leaf_ref* to) {
    return list_leaves<Track>(e.c, list_leaves<Track>(e.b, list_leaves<Track>(e.a, to)));
  }
};

}  // namespace detail
}  // namespace sinter

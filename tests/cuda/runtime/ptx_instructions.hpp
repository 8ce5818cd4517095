// tests/cuda/runtime/ptx_instructions.hpp: what the instructions of PTX do.
#pragma once

#include <algorithm>
#include <cfenv>

#include "ptx_machine.hpp"

namespace ptx {

template <class T, class F>
constexpr action binary(F) {
  return [](machine& m, const instruction& i) { m.set<T>(i.to[0], F()(m.get<T>(i.from[0]), m.get<T>(i.from[1]))); };
}
template <class T, class F>
constexpr action unary(F) {
  return [](machine& m, const instruction& i) { m.set<T>(i.to[0], F()(m.get<T>(i.from[0]))); };
}
template <class T, class F>
constexpr action ternary(F) {
  return [](machine& m, const instruction& i) {
    m.set<T>(i.to[0], F()(m.get<T>(i.from[0]), m.get<T>(i.from[1]), m.get<T>(i.from[2])));
  };
}

/// f(T()) for the type of that name; false if there is none.
template <class F>
bool with_integer(const std::string& type, const F& f) {
  if (type == "s8") f(std::int8_t());
  else if (type == "u8" || type == "b8") f(std::uint8_t());
  else if (type == "s16") f(std::int16_t());
  else if (type == "u16" || type == "b16") f(std::uint16_t());
  else if (type == "s32") f(std::int32_t());
  else if (type == "u32" || type == "b32") f(std::uint32_t());
  else if (type == "s64") f(std::int64_t());
  else if (type == "u64" || type == "b64") f(std::uint64_t());
  else return false;
  return true;
}
template <class F>
bool with_floating(const std::string& type, const F& f) {
  if (type == "f32") f(float());
  else if (type == "f64") f(double());
  else return false;
  return true;
}
template <class F>
bool with_any(const std::string& type, const F& f) {
  if (type == "f16") f(half_bits());
  else if (type == "bf16") f(bfloat_bits());
  else return with_integer(type, f) || with_floating(type, f);
  return true;
}

/// Arithmetic with another rounding than to the nearest.
template <int Mode, class F>
struct rounded {
  template <class... T>
  auto operator()(T... x) const {
    std::fesetround(Mode);
    const volatile auto y = [](volatile T... v) { return F()(T(v)...); }(x...);
    std::fesetround(FE_TONEAREST);
    return y;
  }
};
template <class F>
struct saturated {
  template <class... T>
  auto operator()(T... x) const {
    const auto y = F()(x...);
    return y > 0 ? std::min(y, decltype(y)(1)) : decltype(y)(0);
  }
};
/// Denormal numbers are zero.
template <class F>
struct flushed {
  template <class T>
  static T flush(T x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
  }
  template <class... T>
  auto operator()(T... x) const {
    return flush(F()(flush(x)...));
  }
};

/// The one NaN that arithmetic on float gives, whatever the host's would be.
template <class T>
T with_one_nan(T x) {
  if constexpr (std::is_same_v<T, float>) return std::isnan(x) ? std::bit_cast<float>(0x7fffffff) : x;
  else return x;
}
template <class F>
struct canonical {
  template <class... T>
  auto operator()(T... x) const {
    return with_one_nan(F()(x...));
  }
};

struct plus {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else return a + b;
  }
};
struct minus {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    else return a - b;
  }
};
struct times {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else return a * b;
  }
};
struct times_high {
  template <class T>
  T operator()(T a, T b) const {
    __extension__ using wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(wide(a) * wide(b) >> 8 * sizeof(T));
  }
};
struct over {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(a));
    }
    return static_cast<T>(a / b);
  }
};
struct rest {
  template <class T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct least {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return b;
      if (std::isnan(b)) return a;
      if (a == b) return std::signbit(a) ? a : b;
    }
    return b < a ? b : a;
  }
};
struct most {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return b;
      if (std::isnan(b)) return a;
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
  }
};
template <class F>
struct keeping_nan {
  template <class T>
  T operator()(T a, T b) const {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    return F()(a, b);
  }
};
struct fused {
  template <class T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct magnitude {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return std::abs(a);
    else return a < 0 ? static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(a)) : a;
  }
};
struct negated {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return -a;
    else return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(a));
  }
};
struct with_sign_of {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};
struct both {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct either {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct differing {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct inverted {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_same_v<T, bool>) return !a;
    else return static_cast<T>(~a);
  }
};
#define SINTER_PTX_FUNCTION(name, expression) \
  struct name {                               \
    template <class T>                        \
    T operator()(T x) const {                 \
      return expression;                      \
    }                                         \
  };
SINTER_PTX_FUNCTION(root, std::sqrt(x))
SINTER_PTX_FUNCTION(reciprocal, T(1) / x)
SINTER_PTX_FUNCTION(reciprocal_root, static_cast<T>(1 / std::sqrt(static_cast<double>(x))))
SINTER_PTX_FUNCTION(power_of_2, static_cast<T>(std::exp2(static_cast<double>(x))))
SINTER_PTX_FUNCTION(log_to_2, static_cast<T>(std::log2(static_cast<double>(x))))
SINTER_PTX_FUNCTION(sine, static_cast<T>(std::sin(static_cast<double>(x))))
SINTER_PTX_FUNCTION(cosine, static_cast<T>(std::cos(static_cast<double>(x))))
SINTER_PTX_FUNCTION(hyperbolic_tangent, static_cast<T>(std::tanh(static_cast<double>(x))))
SINTER_PTX_FUNCTION(leading_zeros, static_cast<T>(std::countl_zero(x)))
SINTER_PTX_FUNCTION(ones, static_cast<T>(std::popcount(x)))
#undef SINTER_PTX_FUNCTION
struct reversed {
  template <class T>
  T operator()(T x) const {
    T y = 0;
    for (std::size_t b = 0; b < 8 * sizeof(T); ++b) y = static_cast<T>(y | (x >> b & 1) << (8 * sizeof(T) - 1 - b));
    return y;
  }
};

struct comparison {
  enum { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
};
template <int Which, class T>
bool compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if constexpr (Which == comparison::num) return !unordered;
    else if constexpr (Which == comparison::nan) return unordered;
    else if (unordered) return Which >= comparison::equ;
  }
  constexpr int which = Which % comparison::equ;
  if constexpr (which == comparison::eq) return a == b;
  else if constexpr (which == comparison::ne) return a != b;
  else if constexpr (which == comparison::lt) return a < b;
  else if constexpr (which == comparison::le) return a <= b;
  else if constexpr (which == comparison::gt) return a > b;
  else return a >= b;
}
/// Combine: 0 nothing, 1 and, 2 or, 3 xor with a further predicate.
template <int Which, int Combine, class T>
void set_predicate(machine& m, const instruction& i) {
  const bool found = compare<Which>(m.get<T>(i.from[0]), m.get<T>(i.from[1]));
  const auto combine = [&](bool x) {
    if constexpr (Combine == 0) return x;
    const bool other = (m.bits(i.from[2]) & 1) != 0;
    return Combine == 1 ? x && other : Combine == 2 ? x || other : x != other;
  };
  const bool first = combine(found), second = combine(!found);  // before the further predicate is written
  m.set<std::uint8_t>(i.to[0], first);
  m.set<std::uint8_t>(i.to[1], second);
}
template <int Combine, class T, int Which = 0>
action predicate_action(int which) {
  if constexpr (Which > comparison::nan) {
    return nullptr;
  } else {
    if (which == Which) {
      if constexpr (Which < comparison::equ || std::is_floating_point_v<T>) return &set_predicate<Which, Combine, T>;
      else return nullptr;
    }
    return predicate_action<Combine, T, Which + 1>(which);
  }
}

enum class rounding { nearest, zero, down, up, integer_nearest, integer_zero, integer_down, integer_up };
template <class T>
T to_integral(T x, rounding r) {
  switch (r) {
    case rounding::integer_zero:
      return std::trunc(x);
    case rounding::integer_down:
      return std::floor(x);
    case rounding::integer_up:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}
template <class To, class From>
To converted(From x, rounding r) {
  if constexpr (std::is_same_v<From, half_bits> || std::is_same_v<From, bfloat_bits>) {
    return converted<To>(to_float(x), r);
  } else if constexpr (std::is_same_v<To, half_bits>) {
    return to_half(x);
  } else if constexpr (std::is_same_v<To, bfloat_bits>) {
    return to_bfloat(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x))
      return sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1))
                                                  : To{0};
    const From y = to_integral(x, r);
    if (y <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (y >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(y);
  } else if constexpr (std::is_floating_point_v<To>) {
    if constexpr (std::is_same_v<To, From>) {
      if (r >= rounding::integer_nearest) return to_integral(x, r);
    }
    if (r == rounding::zero) std::fesetround(FE_TOWARDZERO);
    if (r == rounding::down) std::fesetround(FE_DOWNWARD);
    if (r == rounding::up) std::fesetround(FE_UPWARD);
    const volatile From from = x;
    const volatile To y = static_cast<To>(from);
    std::fesetround(FE_TONEAREST);
    return with_one_nan(To(y));
  } else {
    return static_cast<To>(x);
  }
}
template <class To, class From, rounding R, bool Saturates>
void convert(machine& m, const instruction& i) {
  To y = converted<To>(m.get<From>(i.from[0]), R);
  if constexpr (Saturates && std::is_floating_point_v<To>) y = y > 0 ? std::min(y, To(1)) : To(0);
  m.set<To>(i.to[0], y);
}

template <space Where, class T>
void load(machine& m, const instruction& i) {
  const char* p =
      m.at(i, Where, m.bits(i.from[0]) + i.offset, sizeof(T) * static_cast<std::size_t>(i.count), access::read);
  for (int k = 0; k < i.count; ++k, p += sizeof(T)) {
    T x;
    std::memcpy(&x, p, sizeof x);
    m.set<T>(i.to[k], x);
  }
}
template <space Where, class T>
void store(machine& m, const instruction& i) {
  char* p = m.at(i, Where, m.bits(i.to[0]) + i.offset, sizeof(T) * static_cast<std::size_t>(i.count), access::write);
  for (int k = 0; k < i.count; ++k, p += sizeof(T)) {
    const T x = m.get<T>(i.from[k]);
    std::memcpy(p, &x, sizeof x);
  }
}
template <class F>
action by_space(space where, F f) {
  switch (where) {
    case space::global:
      return f(std::integral_constant<space, space::global>());
    case space::shared:
      return f(std::integral_constant<space, space::shared>());
    case space::local:
      return f(std::integral_constant<space, space::local>());
    case space::param:
      return f(std::integral_constant<space, space::param>());
    default:
      return f(std::integral_constant<space, space::generic>());
  }
}

template <space Where, class T, class F>
void atomic(machine& m, const instruction& i) {
  char* const p = m.at(i, Where, m.bits(i.from[0]) + i.offset, sizeof(T), access::atomic);
  T old;
  std::memcpy(&old, p, sizeof old);
  const T now = F()(old, m.get<T>(i.from[1]));
  std::memcpy(p, &now, sizeof now);
  m.set<T>(i.to[0], old);
}
struct second {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};
template <space Where, class T>
void compare_and_swap(machine& m, const instruction& i) {
  char* const p = m.at(i, Where, m.bits(i.from[0]) + i.offset, sizeof(T), access::atomic);
  T old;
  std::memcpy(&old, p, sizeof old);
  if (old == m.get<T>(i.from[1])) {
    const T now = m.get<T>(i.from[2]);
    std::memcpy(p, &now, sizeof now);
  }
  m.set<T>(i.to[0], old);
}

inline void branch(machine& m, const instruction& i) { m.t->frames.back().next = i.target; }
inline void branch_by_index(machine& m, const instruction& i) {
  const word which = m.get<std::uint32_t>(i.from[0]);
  if (which >= i.targets.size()) m.fail(i, "there is no such label");
  m.t->frames.back().next = i.targets[which];
}
inline void enter(machine& m, const instruction& i) {
  thread& t = *m.t;
  const frame caller = t.frames.back();
  const call_site& c = caller.in->calls[static_cast<std::size_t>(i.call)];
  const function& to = *c.to;
  if (t.frames.size() > 100) m.fail(i, "calls too deep");
  const auto align = [](std::size_t n) { return (n + 63) / 64 * 64; };
  frame callee{&to, 0, t.registers.size(), align(t.parameters.size()), align(t.local.size())};
  t.registers.resize(callee.registers + static_cast<std::size_t>(to.registers), 0xCBCBCBCBCBCBCBCB);
  t.parameters.resize(callee.parameters + to.call_bytes, static_cast<char>(garbage));
  t.local.resize(callee.local + to.local_bytes, static_cast<char>(garbage));
  for (std::size_t k = 0; k < to.parameters.size(); ++k)
    std::memcpy(t.parameters.data() + callee.parameters + to.parameters[k].offset,
                t.parameters.data() + caller.parameters + c.arguments[k].first, to.parameters[k].bytes);
  t.frames.push_back(callee);
  m.registers = t.registers.data() + callee.registers;
}
inline void leave(machine& m, const instruction&) {
  thread& t = *m.t;
  const frame callee = t.frames.back();
  if (t.frames.size() == 1) {
    t.done = m.stop = true;
    return;
  }
  t.frames.pop_back();
  const frame& caller = t.frames.back();
  const call_site& c = caller.in->calls[static_cast<std::size_t>(caller.in->code[caller.next - 1].call)];
  for (std::size_t k = 0; k < c.results.size(); ++k)
    std::memcpy(t.parameters.data() + caller.parameters + c.results[k].first,
                t.parameters.data() + callee.parameters + callee.in->results[k].offset, c.results[k].second);
  t.registers.resize(callee.registers);
  t.parameters.resize(caller.parameters + caller.in->call_bytes);
  t.local.resize(caller.local + caller.in->local_bytes);
  m.registers = t.registers.data() + caller.registers;
}
inline void end(machine& m, const instruction&) { m.t->done = m.stop = true; }
inline void wait(machine& m, const instruction& i) {
  m.t->waits = &i;
  m.stop = true;
}
inline void nothing(machine&, const instruction&) {}
/// Blocks before this one have ended: what it waits for is there, or never will be.
inline void sleep(machine& m, const instruction& i) {
  if (++m.sleeps > 1'000'000) m.fail(i, "waits for what nobody does");
}
inline void trap(machine& m, const instruction& i) { m.fail(i, "a trap"); }
inline void fall_off(machine& m, const instruction& i) { m.fail(i, "no instruction follows"); }

// What a warp does together. A mask says which threads take part; see module::run().

/// Calls f(lane, thread) for those that take part, with its registers at hand.
template <class F>
void each_lane(machine& m, thread* const (&lanes)[warp_threads], const F& f) {
  for (int lane = 0; lane < warp_threads; ++lane) {
    if (lanes[lane] == nullptr) continue;
    m.turn_to(*lanes[lane]);
    f(lane);
  }
}
inline void meet(machine&, const instruction&, thread* const (&)[warp_threads]) {}
/// vote.sync of a predicate: who has it, whether any has it, whether all have it.
enum class vote { ballot, any, all };
template <vote What>
void count_votes(machine& m, const instruction& i, thread* const (&lanes)[warp_threads]) {
  std::uint32_t votes = 0, voters = 0;
  each_lane(m, lanes, [&](int lane) {
    votes |= static_cast<std::uint32_t>(m.bits(i.from[0]) & 1) << lane;
    voters |= std::uint32_t{1} << lane;
  });
  each_lane(m, lanes, [&](int) {
    if constexpr (What == vote::ballot) m.set<std::uint32_t>(i.to[0], votes);
    else m.set<std::uint8_t>(i.to[0], What == vote::any ? votes != 0 : votes == voters);
  });
}
/// shfl.sync: the value of another lane, and whether there is one.
enum class shuffle { idx, up, down, bfly };
template <shuffle How>
void exchange(machine& m, const instruction& i, thread* const (&lanes)[warp_threads]) {
  std::uint32_t values[warp_threads] = {};
  each_lane(m, lanes, [&](int lane) { values[lane] = m.get<std::uint32_t>(i.from[0]); });
  each_lane(m, lanes, [&](int lane) {
    const auto b = m.get<std::uint32_t>(i.from[1]), c = m.get<std::uint32_t>(i.from[2]);
    const int segment = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31), by = static_cast<int>(b & 31);
    const int least_lane = lane & segment, last = least_lane | (clamp & ~segment);
    const int from = How == shuffle::idx    ? least_lane | (by & ~segment)
                     : How == shuffle::up   ? lane - by
                     : How == shuffle::down ? lane + by
                                            : lane ^ by;
    const bool there = How == shuffle::up ? from >= last : from <= last;
    const int source = there ? from : lane;
    if (lanes[source] == nullptr) m.fail(i, "lane " + std::to_string(source) + " takes no part");
    m.set<std::uint32_t>(i.to[0], values[source]);
    if (i.to[1].kind != operand::none) m.set<std::uint8_t>(i.to[1], there);
  });
}

/// bar.red.or: whether any thread of the block has the predicate.
inline void any_of_block(machine& m, const instruction& i, std::vector<thread>& threads) {
  const auto each = [&](const auto& f) {
    for (thread& t : threads) {
      if (t.done) continue;
      m.turn_to(t);
      f();
    }
  };
  bool any = false;
  each([&] { any = any || (m.bits(i.from[0]) & 1) != 0; });
  each([&] { m.set<std::uint8_t>(i.to[0], any); });
}

/// cp.async: done when it is waited for, so that who reads too early finds what was there before.
inline void copy_later(machine& m, const instruction& i) {
  const std::size_t bytes = m.bits(i.from[1]);
  m.at(i, space::shared, m.bits(i.to[0]) + i.offset, bytes, access::write);
  m.at(i, space::global, m.bits(i.from[0]), bytes, access::read);
  m.t->copies.emplace_back(m.bits(i.to[0]) + i.offset, m.bits(i.from[0]), bytes);
}
inline void finish_copies(machine& m, const instruction& i) {
  for (const auto& [to, from, bytes] : m.t->copies)
    std::memcpy(m.at(i, space::shared, to, bytes, access::write), m.at(i, space::global, from, bytes, access::read),
                bytes);
  m.t->copies.clear();
}

template <auto Read>
void special(machine& m, const instruction& i) {
  m.set<std::uint32_t>(i.to[0], static_cast<std::uint32_t>(Read(m)));
}

template <std::size_t From, std::size_t To>
void change_window(machine& m, const instruction& i) {
  m.set<word>(i.to[0], m.bits(i.from[0]) - From + To);
}

template <class T>
void select(machine& m, const instruction& i) {
  m.set<T>(i.to[0], (m.bits(i.from[2]) & 1) != 0 ? m.get<T>(i.from[0]) : m.get<T>(i.from[1]));
}
template <class T>
void shift_left(machine& m, const instruction& i) {
  const auto by = m.get<std::uint32_t>(i.from[1]);
  m.set<T>(i.to[0], by >= 8 * sizeof(T) ? T(0) : static_cast<T>(m.get<T>(i.from[0]) << by));
}
template <class T>
void shift_right(machine& m, const instruction& i) {
  const auto by = m.get<std::uint32_t>(i.from[1]);
  const T x = m.get<T>(i.from[0]);
  m.set<T>(i.to[0],
           by >= 8 * sizeof(T) ? static_cast<T>(std::is_signed_v<T> && x < 0 ? -1 : 0) : static_cast<T>(x >> by));
}
template <bool Left, bool Wraps>
void funnel(machine& m, const instruction& i) {
  const word both_words = word{m.get<std::uint32_t>(i.from[1])} << 32 | m.get<std::uint32_t>(i.from[0]);
  const auto asked = m.get<std::uint32_t>(i.from[2]);
  const std::uint32_t by = Wraps ? asked % 32 : std::min(asked, 32u);
  m.set<std::uint32_t>(i.to[0], static_cast<std::uint32_t>(Left ? both_words >> (32 - by) : both_words >> by));
}
template <class T>
void extract_bits(machine& m, const instruction& i) {
  const unsigned from = m.get<std::uint32_t>(i.from[1]) & 255, length = m.get<std::uint32_t>(i.from[2]) & 255;
  const unsigned width = 8 * sizeof(T);
  const T x = m.get<T>(i.from[0]);
  T y = 0;
  for (unsigned b = 0; b < width; ++b) {
    const unsigned at = from + b;
    bool bit = b < length && at < width && (x >> at & 1) != 0;
    if (std::is_signed_v<T> && length > 0 && (b >= length || at >= width))
      bit = (x >> std::min(from + length - 1, width - 1) & 1) != 0;
    y = static_cast<T>(static_cast<std::make_unsigned_t<T>>(y) | static_cast<std::make_unsigned_t<T>>(bit) << b);
  }
  m.set<T>(i.to[0], y);
}
template <class T>
void insert_bits(machine& m, const instruction& i) {
  const T x = m.get<T>(i.from[0]);
  T y = m.get<T>(i.from[1]);
  const unsigned from = m.get<std::uint32_t>(i.from[2]) & 255, length = m.get<std::uint32_t>(i.from[3]) & 255;
  for (unsigned b = 0; b < length && from + b < 8 * sizeof(T); ++b)
    y = static_cast<T>((y & ~(T(1) << (from + b))) | (x >> b & 1) << (from + b));
  m.set<T>(i.to[0], y);
}
inline void permute_bytes(machine& m, const instruction& i) {
  const word both_words = word{m.get<std::uint32_t>(i.from[1])} << 32 | m.get<std::uint32_t>(i.from[0]);
  const auto which = m.get<std::uint32_t>(i.from[2]);
  std::uint32_t y = 0;
  for (unsigned b = 0; b < 4; ++b) {
    const unsigned selector = which >> 4 * b & 15;
    std::uint32_t byte = static_cast<std::uint32_t>(both_words >> 8 * (selector & 7)) & 255;
    if ((selector & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
    y |= byte << 8 * b;
  }
  m.set<std::uint32_t>(i.to[0], y);
}
inline void logic_of_3(machine& m, const instruction& i) {
  const auto a = m.get<std::uint32_t>(i.from[0]), b = m.get<std::uint32_t>(i.from[1]),
             c = m.get<std::uint32_t>(i.from[2]);
  const auto table = m.get<std::uint32_t>(i.from[3]);
  std::uint32_t y = 0;
  for (unsigned bit = 0; bit < 32; ++bit)
    y |= (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)) & 1) << bit;
  m.set<std::uint32_t>(i.to[0], y);
}
template <class T, class Wide>
void times_wide(machine& m, const instruction& i) {
  m.set<Wide>(i.to[0],
              static_cast<Wide>(static_cast<Wide>(m.get<T>(i.from[0])) * static_cast<Wide>(m.get<T>(i.from[1]))));
}
template <class T, class Wide>
void times_wide_plus(machine& m, const instruction& i) {
  const Wide product =
      static_cast<Wide>(static_cast<Wide>(m.get<T>(i.from[0])) * static_cast<Wide>(m.get<T>(i.from[1])));
  m.set<Wide>(i.to[0], plus()(product, m.get<Wide>(i.from[2])));
}
template <class T, class Product>
void times_plus(machine& m, const instruction& i) {
  m.set<T>(i.to[0], plus()(Product()(m.get<T>(i.from[0]), m.get<T>(i.from[1])), m.get<T>(i.from[2])));
}
/// Sums of numbers that take more than one register: what is carried goes from one instruction to the next. Of a
/// product, Product is the part that is added to; void where there is none.
template <class T, class Product, bool Adds, bool Reads, bool Writes>
void add_with_carry(machine& m, const instruction& i) {
  __extension__ using wide = unsigned __int128;
  const T a = m.get<T>(i.from[0]), b = m.get<T>(i.from[1]);
  wide x = a, y = b;
  if constexpr (!std::is_void_v<Product>) {
    x = Product()(a, b);
    y = m.get<T>(i.from[2]);
  }
  const wide in = Reads && m.t->carry ? 1 : 0;
  const wide sum = Adds ? x + y + in : x - y - in;
  if (Writes) m.t->carry = (sum >> 8 * sizeof(T)) != 0;
  m.set<T>(i.to[0], static_cast<T>(sum));
}

/// One register from several, or the other way round; from the lowest part up.
template <class Part>
void join(machine& m, const instruction& i) {
  word x = 0;
  for (int k = 0; k < i.count; ++k)
    x |= static_cast<word>(m.get<Part>(i.from[k])) << 8 * sizeof(Part) * static_cast<unsigned>(k);
  m.set<word>(i.to[0], x);
}
template <class Part>
void part(machine& m, const instruction& i) {
  const word x = m.bits(i.from[0]);
  for (int k = 0; k < i.count; ++k)
    m.set<Part>(i.to[k], static_cast<Part>(x >> 8 * sizeof(Part) * static_cast<unsigned>(k)));
}
template <class T>
void is_of_kind(machine& m, const instruction& i) {
  const T x = m.get<T>(i.from[0]);
  const word kind = i.offset;
  m.set<std::uint8_t>(i.to[0], kind == 0 ? std::isfinite(x) : kind == 1 ? std::isinf(x) : std::isnan(x));
}

}  // namespace ptx

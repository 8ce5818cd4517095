// tests/cuda/runtime/ptx_machine.hpp: a program of PTX, and the block that runs it.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ptx.hpp"

namespace ptx {

using word = std::uint64_t;

// Generic addresses: that of a GPU's memory is the host's; other kinds lie in windows where the host has nothing.
constexpr word window_bytes = word{1} << 32;
constexpr word shared_window = word{0x5A} << 56, local_window = word{0x5B} << 56, parameter_window = word{0x5C} << 56;
/// Within the window of parameters: those of the kernel, then what functions are handed.
constexpr word call_parameters = word{1} << 20;

constexpr int garbage = 0xCB;

[[noreturn]] inline void refuse(const std::string& what) { throw std::runtime_error("PTX: " + what); }

// Elements that the host has no type for.
struct half_bits {
  std::uint16_t bits;
};
struct bfloat_bits {
  std::uint16_t bits;
};

inline float to_float(half_bits h) {
  const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
  float x = exponent == 31
                ? (fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
            : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                            : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (h.bits & 0x8000) != 0 ? -x : x;
}
inline float to_float(bfloat_bits b) { return std::bit_cast<float>(std::uint32_t{b.bits} << 16); }
inline half_bits to_half(double x) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  const double a = std::abs(x);
  if (std::isnan(x)) return {0x7fff};
  if (a >= 65520) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  const int exponent = a < 0x1p-14 ? -14 : std::ilogb(a);
  const int fraction = static_cast<int>(std::nearbyint(std::ldexp(a, 10 - exponent)));  // to the nearest, ties to even
  return {static_cast<std::uint16_t>(sign | (fraction + ((exponent + 14) << 10)))};
}
inline bfloat_bits to_bfloat(float x) {
  if (std::isnan(x)) return {0x7fff};
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// A program.

enum class space { generic, global, shared, local, param };

struct operand {
  enum { none, reg, value, parameter, call_parameter, local } kind = none;
  int number = 0;  ///< of a register
  word bits = 0;   ///< a value, or an offset in the memory that `kind` names
};

struct instruction;
struct machine;
using action = void (*)(machine&, const instruction&);
struct thread;
/// What threads of a warp do together; null: those that take no part.
constexpr int warp_threads = 32;
using warp_action = void (*)(machine&, const instruction&, thread* const (&)[warp_threads]);
using block_action = void (*)(machine&, const instruction&, std::vector<thread>&);

struct function;
struct call_site {
  const function* to = nullptr;
  std::string name;
  std::vector<std::pair<word, std::size_t>> arguments, results;  ///< offset among the caller's parameters, bytes
};

struct instruction {
  action run = nullptr;
  warp_action together = nullptr;  ///< once all of them have come to it
  block_action at_barrier = nullptr;
  int guard = -1;  ///< a predicate
  bool guard_is_false = false;
  int count = 1;  ///< elements that are read or written together
  operand to[4], from[4];
  word offset = 0;
  std::size_t target = 0;
  std::vector<std::size_t> targets;
  int call = -1;
  const std::string* text = nullptr;
  mutable span seen;  ///< the allocation that was found last
};

using parameter = module::parameter;

struct function {
  std::string name;
  bool is_kernel = false;
  int registers = 0;
  std::vector<parameter> results, parameters;
  std::size_t call_bytes = 0;  ///< parameters of the function, where it is no kernel, and of what it calls
  std::size_t local_bytes = 0;
  std::size_t kernel_bytes = 0;
  std::vector<instruction> code;
  std::vector<call_site> calls;
  bool defined = false;
};

struct frame {
  const function* in;
  std::size_t next;
  std::size_t registers, parameters, local;  ///< where they begin
};

struct thread {
  std::vector<frame> frames;
  std::vector<word> registers;
  std::vector<char> parameters, local;
  std::vector<std::tuple<word, word, std::size_t>> copies;  ///< to, from, bytes: on their way
  unsigned number = 0;
  bool carry = false;
  bool done = false;
  const instruction* waits = nullptr;

  word* current() { return registers.data() + frames.back().registers; }
};

/// Who used a byte of shared memory last, or since the last barrier `several`.
struct usage {
  static constexpr int several = -1;
  struct by {
    std::uint64_t barriers = 0, together = 0;  ///< that the block, and the warp, had passed
    int thread = 0;
    bool atomic = false;
  };
  by writer, reader;
};
enum class access { read, write, atomic };

/// A block that runs.
struct machine {
  thread* t = nullptr;
  const char* kernel_parameters = nullptr;
  std::size_t kernel_bytes = 0;
  std::vector<char> shared;
  std::vector<usage> uses;     ///< of each byte of it
  std::uint64_t barriers = 1;  ///< that were passed, in all blocks
  std::uint64_t together = 1;  ///< what the warp has done so
  unsigned block = 0, blocks = 0, threads = 0, sleeps = 0;
  const std::function<span(std::uintptr_t)>* memory = nullptr;
  std::vector<span> own;  ///< variables of the module

  // Of the thread that runs.
  word* registers = nullptr;
  bool stop = false;

  void turn_to(thread& next) {
    t = &next;
    registers = next.current();
  }

  [[noreturn]] void fail(const instruction& i, const std::string& what) const {
    refuse(t->frames.back().in->name + ": " + *i.text + ": " + what + " (thread " + std::to_string(t->number) +
           " of block " + std::to_string(block) + ")");
  }

  word bits(const operand& o) const {
    switch (o.kind) {
      case operand::reg:
        return registers[o.number];
      case operand::parameter:
        return o.bits;
      case operand::call_parameter:
        return call_parameters + t->frames.back().parameters + o.bits;
      case operand::local:
        return t->frames.back().local + o.bits;
      default:
        return o.bits;
    }
  }
  template <class T>
  T get(const operand& o) const {
    const word b = bits(o);
    T x;
    std::memcpy(&x, &b, sizeof x);
    return x;
  }
  template <class T>
  void set(const operand& o, T x) {
    if (o.kind == operand::none) return;  // _
    word b = 0;
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) b = static_cast<word>(static_cast<std::int64_t>(x));
    else std::memcpy(&b, &x, sizeof x);
    registers[o.number] = b;
  }

  char* at(const instruction& i, space where, word address, std::size_t bytes, access how) {
    if (where == space::generic) {
      const word window = address & ~(window_bytes - 1);
      if (window == shared_window) where = space::shared, address -= shared_window;
      else if (window == local_window) where = space::local, address -= local_window;
      else if (window == parameter_window) where = space::param, address -= parameter_window;
      else where = space::global;
    }
    if (address % bytes != 0)
      fail(i, "address " + std::to_string(address) + " is no multiple of " + std::to_string(bytes));
    switch (where) {
      case space::shared: {
        char* const p = inside(i, shared.data(), shared.size(), address, bytes, "shared memory");
        for (std::size_t b = 0; b < bytes; ++b) note(i, uses[address + b], how);
        return p;
      }
      case space::local:
        return inside(i, t->local.data(), t->local.size(), address, bytes, "local memory");
      case space::param:
        if (address < call_parameters)
          return inside(i, const_cast<char*>(kernel_parameters), kernel_bytes, address, bytes, "the parameters");
        return inside(i, t->parameters.data(), t->parameters.size(), address - call_parameters, bytes,
                      "the parameters of a call");
      default:
        break;
    }
    const auto outside = [&] {
      return address < i.seen.begin || address >= i.seen.end || bytes > i.seen.end - address;
    };
    if (outside()) {
      i.seen = (*memory)(address);
      for (const span& s : own)
        if (address >= s.begin && address < s.end) i.seen = s;
      if (outside()) {
        i.seen = {};
        fail(i, "no memory of the GPU at " + std::to_string(address));
      }
    }
    return reinterpret_cast<char*>(address);
  }
  /// Two threads that use the same byte with no barrier between them, one of them to write.
  void note(const instruction& i, usage& u, access how) const {
    const int me = static_cast<int>(t->number);
    const bool atomic = how == access::atomic;
    const auto ordered = [&](const usage::by& b) {
      if (b.barriers != barriers || b.thread == me || (b.atomic && atomic)) return true;
      return b.thread != usage::several && b.thread / warp_threads == me / warp_threads && b.together != together;
    };
    if (!ordered(u.writer)) fail(i, "a race: another thread has written there since the last barrier");
    if (how == access::read) {
      u.reader = {barriers, together, ordered(u.reader) ? me : usage::several, false};
      return;
    }
    if (!ordered(u.reader)) fail(i, "a race: another thread has read there since the last barrier");
    u.writer = {barriers, together, me, atomic};
  }
  char* inside(const instruction& i, char* begin, std::size_t size, word address, std::size_t bytes,
               const char* what) const {
    if (address > size || bytes > size - address)
      fail(i, std::to_string(bytes) + " bytes at " + std::to_string(address) + " of " + std::to_string(size) + " of " +
                  what);
    return begin + address;
  }
};

}  // namespace ptx

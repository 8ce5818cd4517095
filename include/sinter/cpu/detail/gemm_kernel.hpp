// sinter/cpu/detail/gemm_kernel.hpp: the innermost product, a tile of C held in vector registers.
#pragma once

#include <utility>

#include "sinter/core/types.hpp"
#include "sinter/math/packet_eigen.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

template <class T>
struct tile_shape {
  using packet = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int lanes = Eigen::internal::unpacket_traits<packet>::size;
  // Accumulators, the packets of B and one broadcast element of A fill the registers: 14 x 2 of 32, 6 x 2 of 16.
  static constexpr int max_packets = 2;
  static constexpr int max_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 14 : 6;
  static constexpr int max_columns = max_packets * lanes;
  // AVX-512 multiplies by an element of memory in one instruction, which costs a load but no instruction to broadcast
  // it. Some rows do so for their second packet: fewer instructions matter where another thread shares the core, and
  // fewer loads where none does. clang broadcasts the other rows' elements early, and would run out of registers for
  // them.
#if defined(EIGEN_VECTORIZE_AVX512) && defined(__clang__)
  static constexpr int rows_read_twice = 12;
#elif defined(EIGEN_VECTORIZE_AVX512)
  static constexpr int rows_read_twice = 4;
#else
  static constexpr int rows_read_twice = 0;
#endif
  // Steps of k in one turn of a kernel's loop. Without an instruction that multiplies and adds, a product needs a
  // register of its own, and g++ would run out of them.
#if defined(EIGEN_VECTORIZE_FMA) || defined(EIGEN_VECTORIZE_NEON)
  static constexpr int steps_per_turn = 4;
#else
  static constexpr int steps_per_turn = 1;
#endif
};

/// Has a packet read once, into a register, and not again by every instruction that multiplies by it: two loads a cycle
/// would not do.
template <class Packet>
SINTER_INLINE void read_once([[maybe_unused]] Packet& packet) {
#if defined(EIGEN_VECTORIZE_SSE) && !defined(EIGEN_VECTORIZE_AVX512)
  asm("" : "+x"(packet));
#endif
}

/// The columns of a packed strip of which `left` are needed at most: one packet or two.
template <class T>
constexpr index_t strip_width(index_t left) {
  return left > tile_shape<T>::lanes ? tile_shape<T>::max_columns : tile_shape<T>::lanes;
}

/// Writes a tile of C, or adds it. c moves to the next row after the last packet of one: few registers are left for
/// addresses.
template <int Packets, class T, class Packet, int... I>
SINTER_INLINE void store_tile(const Packet* sum, T* c, index_t ldc, bool add, std::integer_sequence<int, I...>) {
  namespace ei = Eigen::internal;
  constexpr int lanes = tile_shape<T>::lanes;
  if (add)
    ((ei::pstoreu(c + I % Packets * lanes, ei::padd(ei::ploadu<Packet>(c + I % Packets * lanes), sum[I])),
      c += I % Packets == Packets - 1 ? ldc : 0),
     ...);
  else ((ei::pstoreu(c + I % Packets * lanes, sum[I]), c += I % Packets == Packets - 1 ? ldc : 0), ...);
}

/// C(Rows, Packets * lanes) = [C +] A(Rows, k) B(k, Packets * lanes), A packed as (k, Rows), B as (k, columns).
///
/// The tile of C, and k elements each from `next` and from `next + next_step` on, which the caller reads after this
/// tile, are fetched a little with every line of k: all at once they would fill the cache's miss buffers, and the loads
/// of A and B would wait behind them. The accumulators are a pack of indices and not loops, so that every compiler
/// keeps them in registers at -O2. Where another thread shares the core, the number of instructions limits the kernel
/// and not the multiplications: several steps of k share those of the loop.
template <class T, int Rows, int Packets, int... I>
void accumulate_tile(index_t k_count, const T* a, const T* b, T* c, index_t ldc, bool add, const T* next,
                     index_t next_step, std::integer_sequence<int, I...> all) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes, steps = tile_shape<T>::steps_per_turn;
  constexpr index_t k_per_fetch = 64 / sizeof(T);
  packet sum[std::size_t{Rows * Packets}];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  const T* a_again = a;
  const auto multiply = [&](int at) SINTER_INLINE_LAMBDA {
    packet right[std::size_t{Packets}];
    for (int p = 0; p < Packets; ++p) {
      right[p] = ei::pload<packet>(b + (at * Packets + p) * lanes);
      read_once(right[p]);
    }
    const auto left = [&](int row, int p) SINTER_INLINE_LAMBDA {
      return ei::pset1<packet>((p > 0 && row < tile_shape<T>::rows_read_twice ? a_again : a)[at * Rows + row]);
    };
    ((sum[I] = ei::pmadd(left(I / Packets, I % Packets), right[I % Packets], sum[I])), ...);
  };
  const auto advance = [&](int count) SINTER_INLINE_LAMBDA {
    a += count * Rows;
    b += count * Packets * lanes;
    // Or the compiler would see that it need not read twice, or address both by one index, which splits the
    // instructions.
    if constexpr (tile_shape<T>::rows_read_twice > 0) {
      a_again += count * Rows;
      asm("" : "+r"(a), "+r"(a_again));
    } else {
      asm("" : "+r"(a));
    }
  };
  advance(0);
  const T* c_row = c;
  const T* const c_last = c + (Rows - 1) * ldc;
  for (index_t left = k_count; left > 0; left -= k_per_fetch) {
    __builtin_prefetch(c_row, 1);
    __builtin_prefetch(c_row + Packets * lanes - 1, 1);
    __builtin_prefetch(next);
    __builtin_prefetch(next + next_step);
    c_row += c_row == c_last ? 0 : ldc;
    next += k_per_fetch;
    const T* const end = a + (left < k_per_fetch ? left : k_per_fetch) * Rows;
    while (end - a >= steps * Rows) {
      SINTER_UNROLL
      for (int at = 0; at < steps; ++at) multiply(at);
      advance(steps);
    }
    while (a != end) {
      multiply(0);
      advance(1);
    }
  }
  store_tile<Packets>(sum, c, ldc, add, all);
}

template <class T, int Rows, int Packets>
void compute_tile(index_t k_count, const T* a, const T* b, T* c, index_t ldc, bool add, const T* next,
                  index_t next_step) {
  accumulate_tile<T, Rows, Packets>(k_count, a, b, c, ldc, add, next, next_step,
                                    std::make_integer_sequence<int, Rows * Packets>{});
}

template <class T>
using tile_function = void (*)(index_t k_count, const T* a, const T* b, T* c, index_t ldc, bool add, const T* next,
                               index_t next_step);

/// The kernels for tiles of an even number of rows.
template <class T>
struct tile_functions {
  tile_function<T> narrow, wide;
};

template <class T>
const tile_functions<T>& kernels_for(index_t rows) {
  return []<int... I>(index_t index, std::integer_sequence<int, I...>) -> const tile_functions<T>& {
    static constexpr tile_functions<T> table[] = {{&compute_tile<T, 2 * I + 2, 1>, &compute_tile<T, 2 * I + 2, 2>}...};
    return table[index];
  }(rows / 2 - 1, std::make_integer_sequence<int, tile_shape<T>::max_rows / 2>{});
}

inline constexpr int rows_in_place = 8;

/// out(R..., Packets * lanes) = A(R..., k) B(k, Packets * lanes): rows of A, each contiguous, read where they are.
template <class T, int Packets, int... R, int... I>
void accumulate_rows_in_place(index_t k_count, const T* const* rows, const T* b, T* out,
                              std::integer_sequence<int, R...>, std::integer_sequence<int, I...>) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  packet sum[sizeof...(I)];
  const T* const row[] = {rows[R]...};
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  for (index_t k = 0; k < k_count; ++k) {
    packet right[std::size_t{Packets}];
    for (int p = 0; p < Packets; ++p) {
      right[p] = ei::pload<packet>(b + p * lanes);
      read_once(right[p]);
    }
    const packet left[] = {ei::pset1<packet>(row[R][k])...};
    ((sum[I] = ei::pmadd(left[I / Packets], right[I % Packets], sum[I])), ...);
    b += Packets * lanes;
  }
  (ei::pstore(out + I * lanes, sum[I]), ...);
}

/// out(8, Packets * lanes) = A(8, k) B(k, Packets * lanes): as many rows at once as there are registers for.
template <class T, int Packets>
void compute_rows_in_place(index_t k_count, const T* const* rows, const T* b, T* out) {
  constexpr int at_once = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? rows_in_place : rows_in_place / 2;
  for (int row = 0; row < rows_in_place; row += at_once)
    accumulate_rows_in_place<T, Packets>(k_count, rows + row, b, out + row * Packets * tile_shape<T>::lanes,
                                         std::make_integer_sequence<int, at_once>{},
                                         std::make_integer_sequence<int, at_once * Packets>{});
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

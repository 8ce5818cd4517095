// sinter/cpu/detail/gemm_kernel.hpp: the innermost product, a tile of C held in vector registers.
#pragma once

#include <Eigen/Core>
#include <utility>

#include "sinter/core/types.hpp"

namespace sinter::cpu_impl::detail {

template <class T>
struct tile_shape {
  using packet = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int lanes = Eigen::internal::unpacket_traits<packet>::size;
  // Accumulators, the packets of B and one broadcast element of A fill the registers: 14 x 2 of 32, 6 x 2 of 16.
  static constexpr int max_packets = 2;
  static constexpr int max_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 || sizeof(packet) == 64 ? 14 : 6;
  static constexpr int max_columns = max_packets * lanes;
};

/// What the product needs after a tile: the next tile of C, and a column strip of B, one row per `b_step` elements.
template <class T>
struct upcoming {
  const T* c;
  const T* b;
  index_t b_step;
};

/// C(Rows, Packets * lanes) = [C +] A(Rows, k) B(k, Packets * lanes), A packed as (k, Rows), B as (k, columns).
///
/// What comes next is fetched a row every few steps of k: all at once it would fill the cache's miss buffers, and the
/// loads of A and B would wait behind it.
template <class T, int Rows, int Packets>
void compute_tile(index_t k_count, const T* a, const T* b, T* c, index_t ldc, bool add, upcoming<T> next) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes, k_per_fetch = 4;
  packet sum[Rows * Packets];
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((sum[I] = ei::pset1<packet>(T(0))), ...);
    const T* fetched = next.c;
    index_t step = ldc;
    for (index_t k = 0, fetches = 1; k < k_count; ++fetches) {
      __builtin_prefetch(fetched, 1);
      __builtin_prefetch(fetched + (Packets - 1) * lanes, 1);
      fetched += step;
      if (fetches == Rows) {
        fetched = next.b;
        step = next.b_step;
      }
      const index_t end = k + k_per_fetch < k_count ? k + k_per_fetch : k_count;
      for (; k < end; ++k) {
        packet right[Packets];
        for (int p = 0; p < Packets; ++p) right[p] = ei::pload<packet>(b + p * lanes);
        ((sum[I] = ei::pmadd(ei::pset1<packet>(a[I / Packets]), right[I % Packets], sum[I])), ...);
        a += Rows;
        b += Packets * lanes;
      }
    }
    if (add) ((sum[I] = ei::padd(ei::ploadu<packet>(c + I / Packets * ldc + I % Packets * lanes), sum[I])), ...);
    (ei::pstoreu(c + I / Packets * ldc + I % Packets * lanes, sum[I]), ...);
  }(std::make_integer_sequence<int, Rows * Packets>{});
}

template <class T>
using tile_function = void (*)(index_t k_count, const T* a, const T* b, T* c, index_t ldc, bool add, upcoming<T> next);

/// The kernel for a tile of an even number of rows, and of one packet or two.
template <class T>
tile_function<T> kernel_for(int rows, int packets) {
  return []<int... I>(int index, std::integer_sequence<int, I...>) {
    static constexpr tile_function<T> table[] = {&compute_tile<T, 2 * (I / 2) + 2, I % 2 + 1>...};
    return table[index];
  }(rows - 2 + packets - 1, std::make_integer_sequence<int, tile_shape<T>::max_rows>{});
}

}  // namespace sinter::cpu_impl::detail

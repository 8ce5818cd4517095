// sinter/cuda/spill.hpp: starting a body, also one that is larger than what a kernel takes as parameters.
//
// Such a body spills to the memory of the GPU. It gets there in the parameters of kernels before it, not by a copy:
// those keep what they were given, so a captured step can be replayed, and no memory of the host has to wait for the
// GPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "sinter/core/arena.hpp"
#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// Part of a body, on its way to the memory of the GPU.
template <int Most>
struct body_part {
  struct alignas(16) word {
    unsigned char bytes[16];
  };
  word* to;
  int count;
  word words[std::size_t{Most}];

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (int i = g.thread(); i < count; i += g.threads()) to[i] = words[i];
  }
};

template <class Body>
struct spilled_body {
  const Body* body;
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    (*body)(g);
  }
};

/// Starts a body on D, after all that was started before; see gpu<D>::launch().
template <device D, class Body>
void launch_on(const work& w, const Body& body, const launch_shape& shape) {
  constexpr std::size_t most = gpu<D>::most_parameters;
  if constexpr (sizeof(Body) <= most) {
    gpu<D>::launch(w, body, shape);
  } else {
    static_assert(std::is_trivially_copyable_v<Body> && alignof(Body) <= 16);
    using part = body_part<static_cast<int>(most / 16) - 1>;
    if (shape.blocks == 0) return;
    const sinter::detail::temporary<D> memory(sizeof(Body) + 15);
    auto* const to = static_cast<typename part::word*>(memory.data());
    for (std::size_t at = 0; at < sizeof(Body); at += sizeof(part::words)) {
      part next{to + at / 16, 0, {}};
      const std::size_t bytes = std::min(sizeof(part::words), sizeof(Body) - at);
      next.count = static_cast<int>((bytes + 15) / 16);
      std::memcpy(next.words, reinterpret_cast<const unsigned char*>(&body) + at, bytes);
      gpu<D>::launch(w, next, {1, 0});
    }
    gpu<D>::launch(w, spilled_body<Body>{reinterpret_cast<const Body*>(to)}, shape);
  }
}
/// The same with a thread for each of body.numel() elements; nothing where there are none.
template <device D, class Body>
void launch_each(const work& w, const Body& body) {
  if (body.numel() > 0) launch_on<D>(w, body, {blocks_for(body.numel(), block_threads), 0});
}

}  // namespace sinter::cuda_impl

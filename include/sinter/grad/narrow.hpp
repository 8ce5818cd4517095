// sinter/grad/narrow.hpp: backward of statements over half and bfloat16 on host devices: gradients that are sums are
// gathered in float. GPUs round them where they are made.
#pragma once

#include <vector>

#include "sinter/core/arena.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::detail {

/// to (+)= the n sums, rounded to T.
template <class T, device D>
void add_rounded(void* sums, index_t n, sink_ref to) {
  const index_t step = 1;
  const leaf_ref in[2] = {{sums, &n, &step, 1, sizeof(float)},
                          {sums, &n, &step, 1, sizeof(float)}};  // the leaf is not read
  to.strides[0] = 1;
  backend<D>::template reverse<float>(kernel::leaf<T, true>{}, shape_upto<1>(&n, 1), in, &to);
}

/// backend<D>::reverse, with the gradient of each narrow leaf that was broadcast made in float and then rounded to its
/// place.
template <class T, device D, class K>
void reverse_narrow(const K& plan, const any_shape& shape, const leaf_ref* inputs, const sink_ref* sinks) {
  constexpr gradient_formats<K> format;
  sink_ref to[K::sinks];
  index_t sums[K::sinks] = {};
  std::vector<temporary<D>> memory;
  for (int s = 0; s < K::sinks; ++s) {
    to[s] = sinks[s];
    bool repeats = false;
    index_t n = 1;
    for (int d = 0; d < shape.rank; ++d) {
      repeats = repeats || (sinks[s].strides[d] == 0 && shape.data[d] != 1);
      n *= sinks[s].strides[d] == 0 ? 1 : shape.data[d];
    }
    if (!repeats || !kernel::is_narrow(format.of[s])) continue;
    sums[s] = n;
    to[s].data = memory.emplace_back(static_cast<std::size_t>(n) * sizeof(float)).data();
    to[s].element_size = sizeof(float);
    to[s].add = false;
  }
  backend<D>::template reverse<T>(plan, shape, inputs, to);
  for (int s = 0; s < K::sinks; ++s) {
    if (sums[s] == 0) continue;
    if (format.of[s] == kernel::gradient_format::half) add_rounded<half, D>(to[s].data, sums[s], sinks[s]);
    else add_rounded<bfloat16, D>(to[s].data, sums[s], sinks[s]);
  }
}

}  // namespace sinter::detail

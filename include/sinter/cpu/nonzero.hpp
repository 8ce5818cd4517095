// sinter/cpu/nonzero.hpp: where a mask is true.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/nonzero.hpp"

namespace sinter::cpu_impl {

/// Counts what is true in each part of a mask, then writes the places part by part.
class true_places {
 public:
  true_places(const bool* mask, index_t n, thread_pool& pool) : mask_(mask), n_(n), pool_(pool) {
    begins_.resize(static_cast<std::size_t>((n + part - 1) / part) + 1);
    each_part([&](std::size_t t, index_t begin, index_t end) {
      begins_[t + 1] = std::count(mask + begin, mask + end, true);
    });
    for (std::size_t t = 1; t < begins_.size(); ++t) begins_[t] += begins_[t - 1];
  }
  index_t count() const { return begins_.back(); }
  void write(std::int64_t* to) const {
    each_part([&](std::size_t t, index_t i, index_t) {
      // each place is written, and counts if it is one: masks are hard to foresee
      for (index_t at = begins_[t]; at < begins_[t + 1]; ++i) {
        to[at] = i;
        at += mask_[i] ? 1 : 0;
      }
    });
  }

 private:
  static constexpr index_t part = 65536;
  template <class F>
  void each_part(const F& f) const {
    pool_.parallel_for(static_cast<index_t>(begins_.size()) - 1,
                       [&](index_t t) { f(static_cast<std::size_t>(t), t * part, std::min(n_, (t + 1) * part)); });
  }

  const bool* mask_;
  index_t n_;
  thread_pool& pool_;
  std::vector<index_t> begins_;  ///< of the parts in the result, and its end
};

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::true_places_op, D> {
  static tensor<std::int64_t, 1, D> run(ops::true_places_op, const tensor<bool, 1, D>& mask) {
    cpu_impl::true_places found(mask.data(), mask.numel(), cpu_impl::pool_of<D>());
    const auto places = tensor<std::int64_t, 1, D>::uninitialized({{found.count()}});
    found.write(places.data());
    return places;
  }
};

}  // namespace sinter::detail

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
    counts_.resize(static_cast<std::size_t>((n + part - 1) / part));
    each_part([&](index_t& count, index_t begin, index_t end) { count = std::count(mask + begin, mask + end, true); });
    for (index_t& count : counts_) count_ += std::exchange(count, count_);
  }
  index_t count() const { return count_; }
  void write(std::int64_t* to) {
    each_part([&](index_t& first, index_t begin, index_t end) {
      std::int64_t* at = to + first;
      for (index_t i = begin; i < end; ++i)
        if (mask_[i]) *at++ = i;
    });
  }

 private:
  static constexpr index_t part = 65536;
  template <class F>
  void each_part(const F& f) {
    pool_.parallel_for(static_cast<index_t>(counts_.size()), [&](index_t t) {
      f(counts_[static_cast<std::size_t>(t)], t * part, std::min(n_, (t + 1) * part));
    });
  }

  const bool* mask_;
  index_t n_, count_ = 0;
  thread_pool& pool_;
  std::vector<index_t> counts_;  ///< then where each part begins in the result
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

// sinter/ranks/rank_buffers.hpp: the buffers of a model, such as the statistics of batch norms, after a step of
// several ranks.
#pragma once

#include <memory>
#include <vector>

#include "sinter/expr/evaluate.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/parallel/replicas.hpp"
#include "sinter/ranks/gradient_buckets.hpp"

namespace sinter::nn::detail {

/// Buffers of one element type on one device.
class buffer_group {
 public:
  virtual ~buffer_group() = default;
  virtual const void* kind() const = 0;
  virtual void start(double weight) = 0;
  virtual void finish() = 0;
  virtual index_t bytes() const = 0;
};

/// Where any rank has written to a buffer since the last time, it becomes the mean of the ranks' values by their
/// weights, or where values are integers the largest.
template <class T, device D, class C>
class typed_buffers final : public buffer_group {
 public:
  explicit typed_buffers(C& ranks) : ranks_(ranks) {}
  void add(const tensor<T, 1, D>& flat) {
    all_.push_back({flat, total_, version_of(flat)});
    total_ += flat.numel();
  }
  const void* kind() const override { return &bucket_kind<T, D>; }

  void start(double weight) override {
    const auto count = static_cast<index_t>(all_.size());
    auto changed = zeros<T>(extents<1>{{count}});
    auto mine = zeros<T, D>(extents<1>{{total_ + count}});
    for (index_t i = 0; i < count; ++i) {
      const one& b = all_[static_cast<std::size_t>(i)];
      if (version_of(b.value) != b.seen) changed.data()[i] = T(1);
      auto place = mine.slice(0, b.begin, b.begin + b.value.numel());
      if constexpr (!floating_element<T>) place.in_place() = b.value;
      else if (weight != 0) place.in_place() = b.value * static_cast<compute_type<T>>(weight);
    }
    mine.slice(0, total_, total_ + count).in_place() = changed.template to<D>();
    if constexpr (floating_element<T>) coming_ = ranks_.all_reduce(mine, reduction::sum, "buffers");
    else coming_ = ranks_.all_reduce(mine, reduction::max, "buffers");
  }
  void finish() override {
    const auto merged = coming_.get();
    const auto changed = merged.slice(0, total_, merged.numel()).template to<cpu>();
    for (std::size_t i = 0; i < all_.size(); ++i) {
      one& b = all_[i];
      if (static_cast<double>(changed.data()[i]) > 0)
        b.value.in_place() = merged.slice(0, b.begin, b.begin + b.value.numel());
      b.seen = version_of(b.value);
    }
  }
  index_t bytes() const override {
    return (total_ + static_cast<index_t>(all_.size())) * static_cast<index_t>(sizeof(T));
  }

 private:
  struct one {
    tensor<T, 1, D> value;
    index_t begin;
    std::uint64_t seen;
  };

  C& ranks_;
  std::vector<one> all_;
  index_t total_ = 0;
  work<tensor<T, 1, D>> coming_;
};

/// All buffers of a model.
class rank_buffers {
 public:
  /// A buffer that was added before is left out. Elements that ranks cannot add are not merged.
  template <class X, class C>
  void add(const std::string& name, const X& buffer, C& ranks) {
    using T = element_of<X>;
    using D = device_of<X>;
    if constexpr (sinter::detail::can_be_summed<T>) {
      const auto value = stored_value(buffer);
      if (!buffer.defined() || buffer.numel() == 0 || !seen_.add(access::data(value))) return;
      if (!value.is_dense())
        sinter::detail::refuse<value_error>({"distributed: the buffer '", name, "' of shape ", value.shape(),
                                             " is a view with gaps; give the module a contiguous() one"});
      for (const auto& group : groups_)
        if (group->kind() == &bucket_kind<T, D>)
          return static_cast<typed_buffers<T, D, C>&>(*group).add(access::in_memory_order(value));
      auto group = std::make_unique<typed_buffers<T, D, C>>(ranks);
      group->add(access::in_memory_order(value));
      groups_.push_back(std::move(group));
    }
  }
  void start(double weight) {
    for (const auto& group : groups_) group->start(weight);
  }
  void finish() {
    for (const auto& group : groups_) group->finish();
  }
  /// Of each sum.
  std::vector<index_t> bytes() const {
    std::vector<index_t> all;
    for (const auto& group : groups_) all.push_back(group->bytes());
    return all;
  }

 private:
  std::vector<std::unique_ptr<buffer_group>> groups_;
  sinter::detail::addresses seen_;
};

}  // namespace sinter::nn::detail

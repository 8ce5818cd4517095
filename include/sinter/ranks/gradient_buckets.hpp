// sinter/ranks/gradient_buckets.hpp: the gradients of a model in buckets, each of which is summed over the ranks as
// soon as a backward pass has made its last gradient.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sinter/grad/home.hpp"
#include "sinter/grad/listener.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ranks/rank_state.hpp"

namespace sinter::nn::detail {

using sinter::detail::access;
using sinter::detail::state_ptr;

/// Its address stands for an element type on a device.
template <class T, class D>
inline constexpr char bucket_kind = 0;

class gradient_bucket;

/// A parameter, free of its type. Its gradient lies in a bucket.
class bucket_leaf {
 public:
  bucket_leaf(state_ptr s, index_t size, std::size_t element_bytes, int of_task)
      : state(std::move(s)), numel(size), bytes(static_cast<std::size_t>(size) * element_bytes), task(of_task) {}
  virtual ~bucket_leaf() = default;
  bucket_leaf(const bucket_leaf&) = delete;
  bucket_leaf& operator=(const bucket_leaf&) = delete;

  /// Equal for leaves that share buckets: those of one element type on one device.
  virtual const void* kind() const = 0;
  virtual std::unique_ptr<gradient_bucket> make_bucket(std::vector<bucket_leaf*> leaves) = 0;
  /// `slice`: the tensor of rank 1 where the gradient lies from now on.
  virtual void move_to(const void* slice) = 0;
  /// The gradient, if there is one, goes to memory of its own.
  virtual void move_out() = 0;
  virtual void listen(gradient_listener& to, std::function<void()> ready, std::function<void()> unused) = 0;

  const state_ptr state;
  const index_t numel;
  const std::size_t bytes;
  const int task;  ///< from 1; 0: of no task
  gradient_bucket* bucket = nullptr;
  std::size_t place = 0;      ///< in its bucket
  bool had_gradient = false;  ///< before the pass
};

/// Gradients that are summed in one call. Behind them lies, for each gradient, the number of ranks that have it.
class gradient_bucket {
 public:
  explicit gradient_bucket(std::vector<bucket_leaf*> l) : leaves(std::move(l)) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      leaves[i]->bucket = this;
      leaves[i]->place = i;
    }
  }
  virtual ~gradient_bucket() = default;
  gradient_bucket(const gradient_bucket&) = delete;
  gradient_bucket& operator=(const gradient_bucket&) = delete;

  /// Multiplies the gradients that leaves already have. By 0 gives 0, also for NaN and infinity.
  virtual void scale(double factor) = 0;
  /// For a leaf without a gradient, which adds zeros to the sum.
  virtual void zero(std::size_t place) = 0;
  /// Starts the sum.
  virtual void start(bool compress, std::string_view name) = 0;
  /// Waits for it. Leaves that have a gradient on any rank have it here, too.
  virtual void finish() = 0;
  virtual index_t bytes() const = 0;
  /// Bytes of the gradients, without the counts. distributed_options::bucket_bytes bounds them.
  index_t gradient_bytes() const {
    std::size_t all = 0;
    for (const bucket_leaf* leaf : leaves) all += leaf->bytes;
    return static_cast<index_t>(all);
  }

  const std::vector<bucket_leaf*> leaves;
  std::size_t missing = 0;  ///< leaves whose gradients the pass has not completed
  bool started = false;
  double ready = 0;  ///< seconds from the begin of the pass to its last gradient
};

template <class T, device D, class C>
class typed_bucket final : public gradient_bucket {
  /// Slices begin at multiples of so many elements, 64 bytes.
  static constexpr index_t granule = 64 / static_cast<index_t>(sizeof(T));

 public:
  typed_bucket(std::vector<bucket_leaf*> l, C& ranks) : gradient_bucket(std::move(l)), ranks_(ranks) {
    index_t end = 0;
    for (const bucket_leaf* leaf : leaves) {
      begins_.push_back(end);
      end += (leaf->numel + granule - 1) / granule * granule;
    }
    gradients_ = end;
    memory_ = zeros<T, D>(extents<1>{{end + count()}});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const tensor<T, 1, D> place = slice(i);
      leaves[i]->move_to(&place);
    }
  }

  void scale(double factor) override {
    if (factor == 1) return;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i]->state->has_kept) slice(i).in_place() = slice(i) * static_cast<compute_type<T>>(factor);
  }
  void zero(std::size_t place) override { slice(place).in_place() = T(0); }

  void start(bool compress, std::string_view name) override {
    auto mine = zeros<T>(extents<1>{{count()}});
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i]->state->has_kept) mine.data()[i] = T(1);
    counts().in_place() = mine.template to<D>();
    started = true;
    if constexpr (std::is_same_v<T, float>) {
      if (compress) {
        packed_ = ranks_.all_reduce(eval(cast<bfloat16>(memory_)), reduction::sum, name);
        is_packed_ = true;
        return;
      }
    }
    sum_ = ranks_.all_reduce(memory_, reduction::sum, name);
  }
  void finish() override {
    if (is_packed_) {
      if constexpr (std::is_same_v<T, float>) memory_.in_place() = cast<float>(packed_.get());
    } else {
      sum_.get();
    }
    started = is_packed_ = false;
    const auto ranks_with = counts().template to<cpu>();
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (static_cast<float>(ranks_with.data()[i]) > 0) leaves[i]->state->has_kept = true;
  }
  index_t bytes() const override { return memory_.numel() * static_cast<index_t>(sizeof(T)); }

 private:
  index_t count() const { return static_cast<index_t>(leaves.size()); }
  tensor<T, 1, D> slice(std::size_t i) const { return memory_.slice(0, begins_[i], begins_[i] + leaves[i]->numel); }
  tensor<T, 1, D> counts() const { return memory_.slice(0, gradients_, gradients_ + count()); }

  C& ranks_;
  std::vector<index_t> begins_;
  index_t gradients_ = 0;
  tensor<T, 1, D> memory_;  ///< the gradients, then the counts
  work<tensor<T, 1, D>> sum_;
  work<tensor<bfloat16, 1, D>> packed_;
  bool is_packed_ = false;
};

template <class V, class C>
class typed_leaf final : public bucket_leaf {
  using T = element_of<V>;
  using D = device_of<V>;

 public:
  typed_leaf(const V& v, C& ranks, int of_task)
      : bucket_leaf(access::state_of(v), v.numel(), sizeof(T), of_task), parameter_(v), ranks_(ranks) {}

  const void* kind() const override { return &bucket_kind<T, D>; }
  std::unique_ptr<gradient_bucket> make_bucket(std::vector<bucket_leaf*> leaves) override {
    return std::make_unique<typed_bucket<T, D, C>>(std::move(leaves), ranks_);
  }
  void move_to(const void* slice) override {
    sinter::detail::give_home(parameter_, *static_cast<const tensor<T, 1, D>*>(slice));
  }
  void move_out() override { sinter::detail::take_home(parameter_); }
  void listen(gradient_listener& to, std::function<void()> ready, std::function<void()> unused) override {
    to.add(parameter_, std::move(ready), std::move(unused));
  }

 private:
  V parameter_;
  C& ranks_;
};

}  // namespace sinter::nn::detail

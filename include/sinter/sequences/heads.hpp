// sinter/sequences/heads.hpp: features as heads of attention, and keys and values kept from one call to the next.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/variable.hpp"

namespace sinter::nn {

/// The features of x (N,T,heads d) as heads: a view (N,heads,T,d). Errors: shape_error where heads do not divide them.
template <class X>
auto split_heads(const X& x, index_t heads) {
  const auto& s = x.shape();
  if (heads < 1 || s[2] % heads != 0)
    sinter::detail::refuse<shape_error>({"split_heads: ", heads, " heads do not divide the features of shape ", s});
  return x.reshape({s[0], s[1], heads, s[2] / heads}).transpose(1, 2);
}
/// The heads of x (N,heads,T,d) side by side again: (N,T,heads d).
template <class X>
auto merge_heads(const X& x) {
  const auto& s = x.shape();
  return x.transpose(1, 2).reshape({s[0], s[2], s[1] * s[3]});
}

struct cache_options {
  index_t value_size = 0;  ///< of a value; 0: as large as a key
  bool rolls = false;      ///< forgets the oldest where it is full, in place of an error; see key_value_cache
};

/// Keys and values (N,heads,T,d) of what a network has read, so that the next token costs a token's work. Its memory
/// is there from the beginning; append() writes in place. One that rolls holds the newest `capacity` tokens: several
/// that are appended at once push out keys which the first of them would have seen, so append one at a time where a
/// window is meant, as multihead_attention does.
///
///     nn::key_value_cache cache(1, 8, 1024, 64);
///     cache.append(k, v);                                            // (1,8,T,64) each
///     auto y = attention(q, cache.keys(), cache.values(), {.causal = true});
template <floating_element T = float, device D = cpu>
class key_value_cache {
 public:
  key_value_cache() = default;
  key_value_cache(index_t batch, index_t heads, index_t capacity, index_t size, const cache_options& options = {})
      : capacity_(capacity), rolls_(options.rolls) {
    const index_t values = options.value_size > 0 ? options.value_size : size;
    if (batch < 0 || heads < 1 || capacity < 1 || size < 1 || options.value_size < 0)
      sinter::detail::refuse<value_error>({"key_value_cache: ", batch, " sequences, ", heads, " heads, a capacity of ",
                                           capacity, ", keys of ", size, " and values of ", options.value_size,
                                           " elements"});
    // One that rolls goes through twice its capacity before it moves what it keeps to the front.
    const index_t room = rolls_ ? 2 * capacity : capacity;
    keys_ = zeros<T, D>({batch, heads, room, size});
    values_ = zeros<T, D>({batch, heads, room, values});
  }

  index_t capacity() const { return capacity_; }
  bool rolls() const { return rolls_; }
  /// The tokens that it holds.
  index_t size() const { return end_ - begin_; }
  /// The tokens that it has been given since clear(): the position of the next.
  index_t position() const { return position_; }

  /// Adds T tokens. Errors: shape_error; value_error where they do not fit, and nothing is added.
  template <expression K, expression V>
    requires(rank_of<K> == 4 && rank_of<V> == 4 && !is_tracked_v<K> && !is_tracked_v<V>)
  void append(const K& k, const V& v) {
    const index_t n = k.shape()[2];
    check_part(k.shape(), keys_.shape(), "keys");
    check_part(v.shape(), values_.shape(), "values");
    if (v.shape()[2] != n)
      sinter::detail::refuse<shape_error>(
          {"key_value_cache: keys of shape ", k.shape(), " with values of shape ", v.shape()});
    if (n > capacity_ || (!rolls_ && size() + n > capacity_))
      sinter::detail::refuse<value_error>(
          {"key_value_cache: ", n, " tokens do not fit a cache with a capacity of ", capacity_, " that holds ", size(),
           rolls_ ? "; append them in parts" : "; clear() it, make it larger, or let it roll"});
    if (rolls_ && end_ + n > keys_.shape()[2]) move_to_front(capacity_ - n);
    keys_.slice(2, end_, end_ + n) = k;
    values_.slice(2, end_, end_ + n) = v;
    end_ += n;
    position_ += n;
    if (size() > capacity_) begin_ = end_ - capacity_;
  }

  /// Views of what it holds, oldest first: (N,heads,size(),d).
  tensor<T, 4, D> keys() const { return keys_.slice(2, begin_, end_); }
  tensor<T, 4, D> values() const { return values_.slice(2, begin_, end_); }

  /// Forgets all.
  void clear() { begin_ = end_ = position_ = 0; }

 private:
  static void check_part(const extents<4>& x, const extents<4>& room, const char* what) {
    if (x[0] != room[0] || x[1] != room[1] || x[3] != room[3])
      sinter::detail::refuse<shape_error>({"key_value_cache: ", what, " of shape ", x, " for a cache of ", room[0],
                                           " sequences, ", room[1], " heads and ", room[3], " elements each"});
  }
  void move_to_front(index_t most) {
    const index_t n = size() < most ? size() : most;
    for (const auto& all : {keys_, values_}) {
      const tensor<T, 4, D> kept = all.slice(2, end_ - n, end_).clone();
      all.slice(2, 0, n) = kept;
    }
    begin_ = 0;
    end_ = n;
  }

  index_t capacity_ = 0, begin_ = 0, end_ = 0, position_ = 0;
  bool rolls_ = false;
  tensor<T, 4, D> keys_, values_;
};
key_value_cache(index_t, index_t, index_t, index_t, const cache_options& = {}) -> key_value_cache<>;

}  // namespace sinter::nn

// sinter/cpu/epilogue.hpp: elementwise work on what another kernel of the host devices makes, part by part.
#pragma once

#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::cpu_impl {

using sinter::detail::any_shape;
using sinter::detail::leaf_ref;
using sinter::detail::sink_ref;

inline operand to_operand(const leaf_ref& leaf, const any_shape& shape) {
  operand o{};
  o.data = static_cast<char*>(leaf.data);
  o.size = leaf.element_size;
  sinter::detail::broadcast_strides(leaf.shape, leaf.strides, leaf.rank, shape.data, o.strides, shape.rank);
  return o;
}

inline operand to_operand(const sink_ref& sink, int rank) {
  operand o{};
  o.data = static_cast<char*>(sink.data);
  o.size = sink.element_size;
  o.add = sink.add;
  for (int d = 0; d < rank; ++d) o.strides[d] = sink.strides[d];
  return o;
}

/// Moves axis 1 of a loop and its operands behind the others: rows of the matrix (pixels, channels) come one by one.
inline void put_channels_last(loop& l) {
  int order[max_rank] = {};
  for (int d = 1; d + 1 < l.rank; ++d) order[d] = d + 1;
  order[l.rank - 1] = 1;
  for (int s = 0; s < l.inputs; ++s) sinter::detail::reorder_axes(order, l.rank, l.in[s].strides);
  for (int s = 0; s < l.outputs; ++s) sinter::detail::reorder_axes(order, l.rank, l.out[s].strides);
  sinter::detail::reorder_axes(order, l.rank, l.shape);
}

/// Elementwise work on a result that another kernel makes part by part: run on each part while it is in cache.
class epilogue {
 public:
  /// Elements [begin, end) of the dense result, in place.
  void range(index_t begin, index_t end) const;
  /// One thread's runs over rows whose values stand elsewhere, but for their end, until they are written to their
  /// place.
  class rows {
   public:
    /// Values of size bytes; do results go past the cache?
    rows(const epilogue& e, int size, bool stream) : loop_(reading_made(e, size)) {
      if (stream) loop_.set_stream();
      loop_.set_row_end(&end_);
    }
    rows(const rows&) = delete;
    rows& operator=(const rows&) = delete;

    /// Elements [begin, end) of the result, the first of which is made from the value at `made`.
    void run(index_t begin, index_t end, const void* made, const row_end& what) {
      for (int s = 0; s < loop_.shape().inputs; ++s)
        if (is_made_[s]) in_[s].data = static_cast<char*>(const_cast<void*>(made)) - begin * in_[s].size;
      end_ = what;
      epilogue::run(loop_, begin, end, out_[0]);
    }

   private:
    // A leaf where the result goes can only be the kernel::made, since the result is new.
    loop reading_made(const epilogue& e, int size) {
      const loop l = e.copy(in_, out_);
      for (int s = 0; s < l.inputs; ++s) {
        is_made_[s] = in_[s].data == out_[0].data;
        if (is_made_[s]) in_[s].size = size;
      }
      return l;
    }

    operand in_[max_operands];
    operand out_[1];
    bool is_made_[max_operands] = {};
    row_end end_;
    prepared_loop loop_;
  };

  /// Rows [r0, r1) and columns [c0, c1) of a result that lies in memory as a matrix, whose columns are axis 1: of a
  /// matrix, or of images with the channels last, whose rows are pixels.
  void tile(index_t r0, index_t r1, index_t c0, index_t c1) const;

 protected:
  loop l_;

 private:
  loop copy(operand* in, operand* out) const {
    loop l = l_;
    l.in = in;
    l.out = out;
    for (int s = 0; s < l.inputs; ++s) in[s] = l_.in[s];
    out[0] = *l_.out;
    return l;
  }
  static void run(const prepared_loop& p, index_t begin, index_t end, const operand& out) {
    char* const base[1] = {out.data};
    const bool add[1] = {false};
    p.run(begin, end, base, add);
  }
};

template <class T, class K>
class fused_epilogue : public epilogue {
 public:
  using tree = K;

  fused_epilogue(const K& plan, const any_shape& shape, const leaf_ref* leaves, const sink_ref& sink) : plan_(plan) {
    l_.rank = shape.rank;
    for (int d = 0; d < l_.rank; ++d) l_.shape[d] = shape.data[d];
    l_.inputs = K::leaves;
    l_.outputs = 1;
    l_.in = in_;
    l_.out = out_;
    l_.fn = forward_kernel<K, T>;
    l_.plan = &plan_;
    out_[0] = to_operand(sink, shape.rank);
    for (int s = 0; s < K::leaves; ++s) in_[s] = to_operand(leaves[s], shape);
  }
  fused_epilogue(const fused_epilogue&) = delete;
  fused_epilogue& operator=(const fused_epilogue&) = delete;

 private:
  K plan_;
  operand in_[pass_of<K::leaves + 1>];
  operand out_[1];
};

inline tile_epilogue tiles_of(const epilogue* after) {
  if (after == nullptr) return {};
  return {[](void* e, index_t r0, index_t r1, index_t c0, index_t c1) {
            static_cast<const epilogue*>(e)->tile(r0, r1, c0, c1);
          },
          const_cast<epilogue*>(after)};
}

/// Runs `after`, where there is one, on results [begin, end), which are in place.
inline void finish_range(const epilogue* after, index_t begin, index_t end) {
  if (after != nullptr) after->range(begin, end);
}

#if SINTER_DEFINES

SINTER_SHARED void epilogue::range(index_t begin, index_t end) const {
  operand in[max_operands];
  operand out[1];
  run(prepared_loop(copy(in, out)), begin, end, out[0]);
}

SINTER_SHARED void epilogue::tile(index_t r0, index_t r1, index_t c0, index_t c1) const {
  operand in[max_operands];
  operand out[1];
  loop l = copy(in, out);
  put_channels_last(l);
  const auto use_columns = [&](operand& o) { o.data += c0 * o.strides[l.rank - 1] * o.size; };
  for (int s = 0; s < l.inputs; ++s) use_columns(in[s]);
  use_columns(out[0]);
  const index_t width = l.shape[l.rank - 1] = c1 - c0;
  run(prepared_loop(l), r0 * width, r1 * width, out[0]);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl

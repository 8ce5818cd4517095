// sinter/optim/update.hpp: an update rule as one kernel, in one pass over a parameter, its gradient and its state.
//
// A rule is written on values, in the words of math/, rather than as expressions: what several results share is then
// computed once, and the code is compiled once for all ranks.
#pragma once

#include "sinter/core/capture.hpp"
#include "sinter/core/create.hpp"
#include "sinter/expr/backend.hpp"
#include "sinter/expr/independent.hpp"
#include "sinter/grad/row_gradient.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/optim/saved.hpp"

namespace sinter::optim::detail {

using sinter::detail::access;
using sinter::detail::flat_values;

SINTER_SHARED_COLD void check_parameter(const std::string& name, const index_t* shape, int rank, bool is_leaf,
                                        bool is_dense);

[[noreturn]] SINTER_SHARED_COLD void refuse_undefined_parameter(const std::string& name);

/// A parameter as a flat array, in the order of memory. Its gradient lies in the same order.
template <class T, device D>
class flat_parameter {
 public:
  template <int R>
  flat_parameter(const std::string& name, const variable<T, R, D>& v)
      : storage_(access::storage_of(access::value_of(v))),
        state_(access::state_of(v)),
        data_(access::data(access::value_of(v))),
        numel_(v.numel()) {
    if (!v.defined()) refuse_undefined_parameter(name);
    check_parameter(name, v.shape().data(), R, v.is_leaf() && state_, access::value_of(v).is_dense());
    if constexpr (R == 2) {
      by_columns_ = !access::value_of(v).is_contiguous();
      matrix_ = by_columns_ ? extents<2>{{v.extent(1), v.extent(0)}} : v.shape();
    }
  }

  bool has_grad() const { return state_->has_kept; }
  /// Whether the gradient may be held by rows.
  bool is_row_sparse() const { return state_->by_rows; }
  /// The gradient where it is held by rows; else null.
  const row_gradient<T, D>* row_grad() const {
    const auto* const s = sinter::detail::rows_in<T, D>(state_);
    return s != nullptr && s->kept_rows.defined() ? &s->kept_rows : nullptr;
  }
  void zero_grad() const { state_->drop_kept(); }
  index_t numel() const { return numel_; }
  /// Extents of a matrix, in the order of its axes in memory; {-1, -1} for other ranks.
  const extents<2>& matrix() const { return matrix_; }
  /// Whether the axes of the matrix lie the other way round in memory.
  bool by_columns() const { return by_columns_; }
  T* data() const { return data_; }
  /// All elements, in the order of memory.
  tensor<T, 1, D> flat() const { return access::make<T, 1, D>(storage_, data_, extents<1>{{numel_}}, {1}); }
  /// Only where has_grad(), and row_grad() is null.
  T* grad() const { return static_cast<T*>(state_->kept_gradient()); }
  /// The elements of the gradient that are held.
  sinter::detail::flat_values held_grad(index_t& n) const {
    const row_gradient<T, D>* const g = row_grad();
    n = g != nullptr ? g->values.numel() : numel_;
    return g != nullptr ? access::data(g->values) : grad();
  }
  /// The value of a table.
  tensor<T, 2, D> table() const {
    const extents<2>& shape = sinter::detail::rows_in<T, D>(state_)->shape;
    return access::make<T, 2, D>(storage_, data_, shape, sinter::detail::row_major_strides(shape));
  }
  /// Graphs that saved the old value must not use the new one.
  void changed() const { sinter::detail::note_write(*storage_.get()); }

 private:
  sinter::detail::storage_ptr storage_;
  sinter::detail::state_ptr state_;
  T* data_;
  index_t numel_;
  extents<2> matrix_{{-1, -1}};
  bool by_columns_ = false;
};

/// Running sums that a rule keeps for each element, at first zero or another number; in float for half and bfloat16,
/// where small steps would be lost.
template <class T, device D>
class running {
 public:
  using value = compute_type<T>;
  /// Before the first step, and where that may fail.
  void reserve(index_t n, double first = 0) {
    if (values_.defined()) return;
    sinter::detail::refuse_capture(
        "the first step of an optimizer",
        "each replay would begin with empty sums; run the step once before, as capture() does");
    values_ = full<value, D>(extents<1>{{n}}, static_cast<value>(first));
  }
  value* data() const { return access::data(values_); }
  const tensor<value, 1, D>& flat() const { return values_; }
  /// The sums of a table of this shape.
  tensor<value, 2, D> as_table(const extents<2>& shape) const { return values_.reshape(shape); }

  // For checkpoints; see saved_type.
  std::optional<host_tensor> saved() const {
    if (!values_.defined()) return std::nullopt;
    return host_tensor(values_);
  }
  void restore(const host_tensor& from, index_t n) { values_ = saved_values<value>(from, n).template to<D>(); }
  void take(running&& from) { take_values(values_, std::move(from.values_)); }

 private:
  tensor<value, 1, D> values_;
};

/// While one is alive, passes run at once, also within independent_passes.
struct at_once {
  sinter::detail::independent_passes* gathering = std::exchange(sinter::detail::independent_passes::current(), nullptr);
  at_once() = default;
  at_once(const at_once&) = delete;
  at_once& operator=(const at_once&) = delete;
  ~at_once() { sinter::detail::independent_passes::current() = gathering; }
};

/// outputs = K(inputs), element by element, over arrays of n. K has what kernel::roots has: leaves, leaf_types,
/// outputs, output_types and run().
template <device D, class K>
void run_update(const K& k, index_t n, const flat_values (&inputs)[K::leaves],
                const flat_values (&outputs)[K::outputs]) {
  sinter::detail::backend<D>::update(k, n, inputs, outputs);
}

/// Backward of a statement y = op(parameter, number) of which y has the gradient g: that of the parameter is factor g,
/// that of the number the sum of g - g, which is 0 if all of g is finite and NaN otherwise.
struct scale_op {
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::nothing};
  double factor;

  template <int I, class G, class A, class B, class Y>
  SINTER_WORD G grad(const G& g, const A&, const B&, const Y&) const {
    if constexpr (I == 0) return g * math::constant<G>(factor);
    else return g - g;
  }
};

/// Multiplies a gradient in place and remembers whether it was finite, in one pass.
template <class T, device D>
class scaled_gradient {
 public:
  void scale(const flat_parameter<T, D>& p, double factor) {
    index_t n = 0;
    const flat_values values = p.has_grad() ? p.held_grad(n) : flat_values();
    checked_ = n > 0;
    if (!checked_) return;
    using C = compute_type<T>;
    using K = sinter::detail::kernel::map<scale_op, sinter::detail::kernel::leaf<T, true>,
                                          sinter::detail::kernel::leaf<C, true>>;
    if (!sum_.defined()) sum_ = tensor<C, 0, D>::uninitialized({});
    const index_t step = 1;
    const sinter::detail::leaf_ref g{values.data, &n, &step, 1, sizeof(T)};
    const sinter::detail::leaf_ref in[3] = {g, g, g};  // of which only the last, the gradient of y, is read
    sinter::detail::sink_ref out[2];
    out[0].data = values.data;
    out[0].strides[0] = 1;
    out[0].element_size = sizeof(T);
    out[1].data = access::data(sum_);
    out[1].element_size = sizeof(C);
    sinter::detail::backend<D>::template reverse<T>(K{{factor}, {}, {}}, sinter::detail::shape_upto<1>(&n, 1), in, out);
  }
  bool finite() const { return !checked_ || sum_.item() == 0; }

 private:
  tensor<compute_type<T>, 0, D> sum_;
  bool checked_ = false;
};

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_parameter(const std::string& name, const index_t* shape, int rank, bool is_leaf,
                                        bool is_dense) {
  if (is_leaf && is_dense) return;
  const std::string label = sinter::detail::joined(
      {name.empty() ? "a variable" : "'" + name + "'", " of shape ", sinter::detail::shape_piece{shape, rank}});
  if (!is_leaf)
    sinter::detail::refuse<value_error>({"optimizer: ", label, " is not a parameter but the result of a statement"});
  sinter::detail::refuse<value_error>({"optimizer: ", label, " is a strided view; use a variable of its contiguous()"});
}

[[noreturn]] SINTER_SHARED_COLD void refuse_undefined_parameter(const std::string& name) {
  sinter::detail::refuse<value_error>({"optimizer: ", (name.empty() ? "a variable" : "'" + name + "'"),
                                       " is empty; build the module before its optimizer"});
}

#endif  // SINTER_DEFINES

}  // namespace sinter::optim::detail

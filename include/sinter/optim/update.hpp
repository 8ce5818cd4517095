// sinter/optim/update.hpp: an update rule as one kernel, in one pass over a parameter, its gradient and its state.
//
// A rule is written on values, in the words of math/, rather than as expressions: what several results share is then
// computed once, and the code is compiled once for all ranks.
#pragma once

#include "sinter/core/capture.hpp"
#include "sinter/core/create.hpp"
#include "sinter/expr/backend.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::optim::detail {

using sinter::detail::access;

[[gnu::cold]] inline void check_parameter(const std::string& name, const index_t* shape, int rank, bool is_leaf,
                                          bool is_dense) {
  if (is_leaf && is_dense) return;
  const std::string label =
      (name.empty() ? "a variable" : "'" + name + "'") + " of shape " + sinter::detail::shape_text(shape, rank);
  if (!is_leaf) throw value_error("optimizer: " + label + " is not a parameter but the result of a statement");
  throw value_error("optimizer: " + label + " is a strided view; use a variable of its contiguous()");
}

/// A parameter as a flat array.
template <class T, device D>
class flat_parameter {
 public:
  template <int R>
  flat_parameter(const std::string& name, const variable<T, R, D>& v)
      : storage_(access::storage_of(access::value_of(v))),
        state_(access::state_of(v)),
        data_(access::data(access::value_of(v))),
        numel_(v.numel()) {
    if (!v.defined()) throw value_error("optimizer: " + (name.empty() ? "a variable" : "'" + name + "'") + " is empty; build the module before its optimizer");
    check_parameter(name, v.shape().data(), R, v.is_leaf() && state_, access::value_of(v).is_contiguous());
  }

  bool has_grad() const { return state_->has_grad; }
  void zero_grad() const { state_->drop_gradient(); }
  index_t numel() const { return numel_; }
  T* data() const { return data_; }
  /// Only where has_grad().
  T* grad() const {
    bool add = false;
    return static_cast<T*>(state_->gradient(add));
  }
  /// Graphs that saved the old value must not use the new one.
  void changed() const { storage_->version.fetch_add(1, std::memory_order_relaxed); }

 private:
  sinter::detail::storage_ptr storage_;
  sinter::detail::state_ptr state_;
  T* data_;
  index_t numel_;
};

/// Running sums that a rule keeps for each element, zero at first.
template <class T, device D>
class running {
 public:
  bool defined() const { return values_.defined(); }
  T* of(index_t n) {
    if (!values_.defined()) {
      sinter::detail::refuse_capture("the first step of an optimizer", "each replay would begin with empty sums; run the step once before, as capture() does");
      values_ = zeros<T, D>(extents<1>{{n}});
    }
    return access::data(values_);
  }

 private:
  tensor<T, 1, D> values_;
};

/// outputs = K(inputs), element by element, over arrays of n.
template <device D, class K, class T>
void run_update(const K& k, index_t n, T* const (&inputs)[K::leaves], T* const (&outputs)[K::outputs]) {
  sinter::detail::backend<D>::update(k, n, inputs, outputs);
}

}  // namespace sinter::optim::detail

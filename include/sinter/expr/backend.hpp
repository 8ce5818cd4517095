// sinter/expr/backend.hpp: what expressions ask of a device, free of element type where compile time counts.
#pragma once

#include "sinter/expr/kernel.hpp"

namespace sinter::detail {

/// The shape that a pass goes over.
struct any_shape {
  const index_t* data;
  int rank;
};
/// One of at most Most axes. The kernels of GPUs have room for so many and decompose an index without a loop; those of
/// the host count them.
template <int Most>
struct shape_upto : any_shape {
  shape_upto(const index_t* e, int axes) : any_shape{e, axes} {}
  shape_upto(const extents<Most>& e) : any_shape{e.data(), Most} {}  // NOLINT: implicit on purpose
};

/// One result of a pass, or one gradient: dense memory, or a view. Strides are those of the pass's index space; 0 along
/// an axis sums over it (gradients of broadcast leaves).
struct sink_ref {
  void* data = nullptr;
  index_t strides[max_rank] = {};
  int element_size = 0;
  bool add = false;  ///< add to what is there instead of overwriting it
};

/// Values side by side, of any element type.
struct flat_values {
  void* data = nullptr;
  int element_size = 0;

  flat_values() = default;
  template <class T>
  flat_values(T* p) : data(p), element_size(sizeof(T)) {}  // NOLINT: implicit on purpose
};

/// A matrix in device memory, or a batch of them; strides in elements.
struct matrix_ref {
  void* data = nullptr;
  index_t rows = 0, columns = 0;
  index_t row_stride = 0, column_stride = 0;
  index_t batches = 1, batch_stride = 0;

  /// Matrix i of the batch, of elements T.
  template <class T>
  SINTER_WORD matrix_ref of_batch(index_t i) const {
    matrix_ref one = *this;
    one.data = static_cast<T*>(data) + i * batch_stride;
    one.batches = 1;
    return one;
  }
};

/// Runs kernels on D; is_backend says what each function does. Specialised for the host devices in cpu/backend.hpp, and
/// for GPUs in cuda/backend.hpp. Here are the names alone, so that a file without that backend can type-check
/// everything, and hears in one message that it cannot run it.
template <device D>
struct backend {
  struct epilogue {};
  template <class T, class K, int Rank>
  struct fused_epilogue : epilogue {
    template <class... A>
    explicit fused_epilogue(const A&...) {}
  };
  template <class T, class... A>
  static void map(const A&...) {
    static_cast<void>(sizeof(runs_in_this_file<D>));
  }
  template <class... A>
  static void map_many(const A&...) {
    static_cast<void>(sizeof(runs_in_this_file<D>));
  }
  template <class K>
  static void update(const K&, index_t, const flat_values (&)[K::leaves], const flat_values (&)[K::outputs]) {
    static_cast<void>(sizeof(runs_in_this_file<D>));
  }
  template <class T, bool Sums = false, class... A>
  static void reverse(const A&...) {
    static_cast<void>(sizeof(runs_in_this_file<D>));
  }
};

/// Stands for a formula where is_backend names functions that take any.
struct any_plan {
  static constexpr int leaves = 1, outputs = 1;
};

/// What evaluation asks of a backend for the device D. Functions are templates, and are not instantiated here.
template <class B, class D>
concept is_backend =
    // Elementwise work on a result that another kernel makes. A fused_epilogue is one for a formula K.
    requires {
      typename B::epilogue;
      typename B::template fused_epilogue<float, any_plan, 1>;
    } &&
    // Passes over an index space, free of the types of their operands.
    requires(const any_plan& plan, const shape_upto<1>& shape, const leaf_ref* leaves, const sink_ref& out,
             const sink_ref* sinks, const flat_values (&flat)[1]) {
      // out = plan(leaves), then several results in one pass, then over arrays of n.
      B::template map<float>(plan, shape, leaves, out);
      B::map_many(plan, shape, leaves, sinks);
      B::update(plan, index_t{1}, flat, flat);
      // The gradients of all leaves of a statement. true: some leaf is broadcast, so that its gradient is a sum.
      B::template reverse<float>(plan, shape, leaves, sinks);
      B::template reverse<float, true>(plan, shape, leaves, sinks);
    };

/// The kernels of a kernel op (ops/detail/kernel_op.hpp) on D. A backend specialises it for each of its devices.
///   static saves forward(const Op&, const tensor& to, const epilogue*, const operand&...)
///     writes `to`, runs the epilogue, and returns what the op saves
///   static void reverse(const Op&, const kernel_backward&)
///     writes or adds the gradients of the operands; see grad/kernel_backward.hpp
/// What is no expression, as it has two results or none, is a struct of its parameters, and its function calls
///   static void run(const Op&, ...)
/// of arguments that the header of the op names.
template <class Op, device D>
struct kernels {
  static_assert(sizeof(runs_in_this_file<D>) != 0);
  static_assert(Op::template has_kernels_on<D>,
                "sinter: this op has no kernels for the device; see docs/adding-a-kernel-op.md");
  // So that there is one message.
  template <class Tensor, class... A>
  static auto forward(const Op&, const Tensor&, const A&...) {
    return typename Op::template saves<element_of<Tensor>, D>();
  }
  template <class Backward>
  static void reverse(const Op&, const Backward&);
  template <class... A>
  static void run(const Op&, const A&...);
};

/// Stands where no work follows that of a point.
template <device D>
inline constexpr const typename backend<D>::epilogue* no_epilogue = nullptr;

}  // namespace sinter::detail

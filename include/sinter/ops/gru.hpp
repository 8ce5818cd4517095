// sinter/ops/gru.hpp: the recurrence of gated recurrent units over packed sequences.
#pragma once

#include "sinter/ops/recurrent.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter {
namespace ops {

/// r and z = sigmoid(x + h w^T + b) for their thirds, n = tanh(x_n + r (h w_n^T + b_n)), h' = (1 - z) n + z h. K. Cho
/// et al., EMNLP 2014, with the reset after the product, as PyTorch and cuDNN have it.
struct gru_units {
  static constexpr int gates = 3;

  /// x: what the input, the state and the bias add to r, z and n, three each, and h. y: r, z, n, h w_n^T + b_n, and h'
  /// twice.
  struct forward {
    static constexpr int inputs = 10, outputs = 6;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      const V h = x[9];
      y[0] = math::sigmoid(x[0] + x[3] + x[6]);
      y[1] = math::sigmoid(x[1] + x[4] + x[7]);
      y[3] = x[5] + x[8];
      y[2] = math::tanh(x[2] + y[0] * y[3]);
      y[4] = y[5] = y[2] + y[1] * (h - y[2]);
    }
  };
  /// x: r, z, n, h w_n^T + b_n, h, and two parts of the gradient of h'. y: the gradients of what the input adds to r, z
  /// and n, of h w_n^T + b_n, and the part of that of h that does not go through the gates.
  struct reverse {
    static constexpr int inputs = 7, outputs = 5;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      const V r = x[0], z = x[1], n = x[2], product = x[3], h = x[4], dh = x[5] + x[6];
      const V one = math::constant<V>(1), dn = dh * (one - z) * (one - n * n);
      y[0] = dn * product * r * (one - r);
      y[1] = dh * (h - n) * z * (one - z);
      y[2] = dn;
      y[3] = dn * r;
      y[4] = dh * z;
    }
  };
};

/// x (rows,3H), w (3H,H), b (1,3H), h (N,H) => the outputs (rows,H), the last h (N,H).
struct gru_op : recurrent_op {
  static constexpr const char* name = "gru";
  static constexpr unsigned grad_uses[4] = {
      uses::second | uses::fourth | uses::result, uses::second | uses::fourth | uses::result,
      uses::second | uses::fourth | uses::result, uses::second | uses::fourth | uses::result};
  /// r, z, n and h w_n^T + b_n of each element.
  template <class T, device D>
  using saves = tensor<T, 2, D>;

  using recurrent_op::recurrent_op;
  extents<1> shape(const extents<2>& x, const extents<2>& w, const extents<2>& b, const extents<2>& h) const {
    check_operands(name, x, w, 3, h[1], h);
    if (b[0] != 1 || b[1] != w[0])
      sinter::detail::refuse<shape_error>({name, ": a bias of shape ", b, "; it must be (1,", w[0], ")"});
    return {{x[0] * h[1] + h.numel()}};
  }
};

}  // namespace ops

namespace detail {

template <device D>
struct kernels<ops::gru_op, D> {
  template <class T, class Epilogue>
  static tensor<T, 2, D> forward(const ops::gru_op& op, const tensor<T, 1, D>& y, const Epilogue*,
                                 const tensor<T, 2, D>& x, const tensor<T, 2, D>& w, const tensor<T, 2, D>& b,
                                 const tensor<T, 2, D>& h0) {
    const index_t units = h0.shape()[1], rows = x.shape()[0], sequences = h0.shape()[0];
    matrices_in parts(y);
    const tensor<T, 2, D> outputs = parts.next(rows, units), h = parts.next(sequences, units);
    write(h0, h);
    const auto saved = tensor<T, 2, D>::uninitialized({{rows, 4 * units}});
    const auto product = tensor<T, 2, D>::uninitialized({{sequences, 3 * units}});
    const auto w_t = w.transpose();
    const auto bias = [&](int k) { return ops::matrix_rows{piece_of(b, k, units).data, 0}; };
    op.steps.each([&](index_t row, index_t n) {
      const auto in = rows_of(x, row, n), hn = rows_of(h, 0, n), to = rows_of(saved, row, n),
                 out = rows_of(outputs, row, n), added = rows_of(product, 0, n);
      multiply_into(hn, w_t, added, false);
      const auto of_x = [&](int k) { return piece_of(in, k, units); };
      const auto of_h = [&](int k) { return piece_of(added, k, units); };
      const auto piece = [&](int k) { return piece_of(to, k, units); };
      run_units<ops::gru_units::forward, T, D>(
          n, units, {of_x(0), of_x(1), of_x(2), of_h(0), of_h(1), of_h(2), bias(0), bias(1), bias(2), piece_of(hn)},
          {piece(0), piece(1), piece(2), piece(3), piece_of(hn), piece_of(out)});
    });
    return saved;
  }

  template <class Backward>
  static void reverse(const ops::gru_op& op, const Backward& b) {
    const auto& saved = b.saved;
    using T = element_of<decltype(saved)>;
    const auto& w = b.template operand<1>();
    const auto& h0 = b.template operand<3>();
    const index_t rows = saved.shape()[0], units = w.shape()[1], sequences = h0.shape()[0];
    matrices_in parts(b.gradient()), results(b.result());
    const tensor<T, 2, D> dy = parts.next(rows, units), dh = parts.next(sequences, units).clone();
    const tensor<T, 2, D> before = states_before<T, D>(op, results.next(rows, units), h0);
    const auto dx = made_gradient<T, D>::of_first(b, {{rows, 3 * units}});
    const auto d_product = tensor<T, 2, D>::uninitialized({{rows, 3 * units}});
    op.steps.each_back([&](index_t row, index_t n) {
      const auto kept = rows_of(saved, row, n), to = rows_of(dx.values, row, n), product = rows_of(d_product, row, n),
                 dhn = rows_of(dh, 0, n);
      const auto from = [&](int k) { return piece_of(kept, k, units); };
      run_units<ops::gru_units::reverse, T, D>(n, units,
                                               {from(0), from(1), from(2), from(3), piece_of(rows_of(before, row, n)),
                                                piece_of(dhn), piece_of(rows_of(dy, row, n))},
                                               {piece_of(to, 0, units), piece_of(to, 1, units), piece_of(to, 2, units),
                                                piece_of(product, 2, units), piece_of(dhn)});
      write(to.slice(1, 0, 2 * units), product.slice(1, 0, 2 * units));
      multiply_into(product, w, dhn, true);
    });
    dx.finish();
    write_operand<3>(b, dh);
    if (b.template wants<1>()) multiply_into_operand<1>(b, d_product.transpose(), before);
    if (b.template wants<2>()) write_operand<2>(b, eval(sum(d_product, 0)).unsqueeze(0));
  }
};

}  // namespace detail

/// The recurrence of gated recurrent units alone: x (rows,3H) is what the inputs add to r, z, n of each element, w
/// (3H,H) are the weights of the state before, b (1,3H) what their product adds, h (N,H) the state before the first
/// element. Gives the outputs (rows,H), then the last h (N,H), one behind the other in a tensor of rank 1. nn::gru is
/// the layer. Derivative: backpropagation through time. Errors: shape_error.
///
///     tensor all = gru_steps(sequence_steps::even(20, 8), linear(x, w_ih, bias), w_hh, b_hh.unsqueeze(0), h0);
template <class X, class W, class B, class H>
  requires detail::takes_operands<ops::gru_op, X, W, B, H>
detail::kernel_of<ops::gru_op, X, W, B, H> gru_steps(const sequence_steps& steps, X&& x, W&& w, B&& b, H&& h) {
  return detail::make_kernel(ops::gru_op(steps), std::forward<X>(x), std::forward<W>(w), std::forward<B>(b),
                             std::forward<H>(h));
}
SINTER_RECURRENT_REJECTIONS(gru_steps, ops::gru_op)

}  // namespace sinter

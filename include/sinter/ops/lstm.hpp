// sinter/ops/lstm.hpp: the recurrence of an LSTM over packed sequences.
#pragma once

#include "sinter/ops/recurrent.hpp"

namespace sinter {
namespace ops {

/// The gates i, f, g, o of x + h w^T, then c' = f c + i g and h' = o tanh(c'). S. Hochreiter and J. Schmidhuber, Neural
/// Computation 9 (1997); the forget gate after F. Gers et al., Neural Computation 12 (2000).
struct lstm_units {
  static constexpr int gates = 4;

  /// x: what the gates i, f, g, o are functions of, and c. y: the gates, c, c', and h' twice.
  struct forward {
    static constexpr int inputs = 5, outputs = 8;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      y[0] = math::sigmoid(x[0]);
      y[1] = math::sigmoid(x[1]);
      y[2] = math::tanh(x[2]);
      y[3] = math::sigmoid(x[3]);
      y[4] = x[4];
      y[5] = y[1] * x[4] + y[0] * y[2];
      y[6] = y[7] = y[3] * math::tanh(y[5]);
    }
  };
  /// x: the gates, c, two parts of the gradient of h', and the gradient of c'. y: the gradients of what the gates are
  /// functions of, and of c.
  struct reverse {
    static constexpr int inputs = 8, outputs = 5;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      const V i = x[0], f = x[1], g = x[2], o = x[3], c = x[4], dh = x[5] + x[6];
      const V t = math::tanh(f * c + i * g);
      const V one = math::constant<V>(1), dc = x[7] + dh * o * (one - t * t);
      y[0] = dc * g * i * (one - i);
      y[1] = dc * c * f * (one - f);
      y[2] = dc * i * (one - g * g);
      y[3] = dh * t * o * (one - o);
      y[4] = dc * f;
    }
  };
  /// x: o, i, f, g, c. y: o tanh(c'), which a projection takes.
  struct unprojected {
    static constexpr int inputs = 5, outputs = 1;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      y[0] = x[0] * math::tanh(x[2] * x[4] + x[1] * x[3]);
    }
  };
};

/// What backward asks of each element: the gates after their functions, and the cell before it.
template <class T, device D>
struct lstm_saved {
  tensor<T, 2, D> gates, cells;
};

/// x (rows,4H), w (4H,H), h and c (N,H) => the outputs (rows,H), the last h and c (N,H).
struct lstm_op : recurrent_op {
  static constexpr const char* name = "lstm";
  static constexpr unsigned grad_uses[4] = {uses::second, uses::second | uses::third | uses::result, uses::second,
                                            uses::second};
  template <class T, device D>
  using saves = lstm_saved<T, D>;

  using recurrent_op::recurrent_op;
  extents<1> shape(const extents<2>& x, const extents<2>& w, const extents<2>& h, const extents<2>& c) const {
    check_operands(name, x, w, 4, c[1], h);
    if (h[1] != c[1] || h[0] != c[0])
      sinter::detail::refuse<shape_error>({name, ": states h of shape ", h, " and c of shape ", c, " differ"});
    return {{x[0] * h[1] + h.numel() + c.numel()}};
  }
};

/// The same with h' = (o tanh(c')) p^T, for p (P,H): w (4H,P), h (N,P). H. Sak et al., INTERSPEECH 2014.
struct projected_lstm_op : recurrent_op {
  static constexpr const char* name = "lstm with a projection";
  static constexpr unsigned grad_uses[5] = {
      uses::second | uses::fifth, uses::second | uses::third | uses::fifth | uses::result, uses::second | uses::fifth,
      uses::second | uses::fifth, uses::second | uses::fifth};
  template <class T, device D>
  using saves = lstm_saved<T, D>;

  using recurrent_op::recurrent_op;
  extents<1> shape(const extents<2>& x, const extents<2>& w, const extents<2>& h, const extents<2>& c,
                   const extents<2>& p) const {
    check_operands(name, x, w, 4, c[1], h);
    if (h[0] != c[0])
      sinter::detail::refuse<shape_error>(
          {name, ": states h of shape ", h, " and c of shape ", c, " differ in their number of sequences"});
    if (p[0] != h[1] || p[1] != c[1])
      sinter::detail::refuse<shape_error>({name, ": a projection of shape ", p, " for states h of shape ", h,
                                           " and c of shape ", c, "; it must be (", h[1], ",", c[1], ")"});
    return {{x[0] * h[1] + h.numel() + c.numel()}};
  }
};

}  // namespace ops

namespace detail {

/// Both kinds of LSTM, whose `projection` is none or p.
template <device D, bool Projected>
struct lstm_kernels {
  template <class T, class Epilogue, class... P>
  static ops::lstm_saved<T, D> forward(const ops::recurrent_op& op, const tensor<T, 1, D>& y, const Epilogue*,
                                       const tensor<T, 2, D>& x, const tensor<T, 2, D>& w, const tensor<T, 2, D>& h0,
                                       const tensor<T, 2, D>& c0, const P&... projection) {
    using F = ops::lstm_units::forward;
    const index_t units = c0.shape()[1], rows = x.shape()[0];
    matrices_in parts(y);
    const tensor<T, 2, D> outputs = parts.next(rows, h0.shape()[1]), h = parts.next(h0.shape()[0], h0.shape()[1]),
                          c = parts.next(c0.shape()[0], units);
    write(h0, h);
    write(c0, c);
    const ops::lstm_saved<T, D> saved{tensor<T, 2, D>::uninitialized(x.shape()),
                                      tensor<T, 2, D>::uninitialized({{rows, units}})};
    tensor<T, 2, D> unprojected;
    if constexpr (Projected) unprojected = tensor<T, 2, D>::uninitialized({{c0.shape()[0], units}});
    const auto w_t = w.transpose();
    op.steps.each([&](index_t row, index_t n) {
      const auto gates = rows_of(saved.gates, row, n), hn = rows_of(h, 0, n), cn = rows_of(c, 0, n),
                 out = rows_of(outputs, row, n), before = rows_of(saved.cells, row, n);
      write(rows_of(x, row, n), gates);
      multiply_into(hn, w_t, gates, true);
      const auto piece = [&](int k) { return piece_of(gates, k, units); };
      const auto h_to = Projected ? piece_of(unprojected) : piece_of(hn);
      const auto out_to = Projected ? h_to : piece_of(out);
      run_units<F, T, D>(n, units, {piece(0), piece(1), piece(2), piece(3), piece_of(cn)},
                         {piece(0), piece(1), piece(2), piece(3), piece_of(before), piece_of(cn), h_to, out_to});
      if constexpr (Projected) {
        (multiply_into(rows_of(unprojected, 0, n), projection.transpose(), out, false), ...);
        write(out, hn);
      }
    });
    return saved;
  }

  template <class Backward>
  static void reverse(const ops::recurrent_op& op, const Backward& b) {
    const auto& saved = b.saved;
    using T = element_of<decltype(saved.gates)>;
    const auto& w = b.template operand<1>();
    const index_t units = saved.cells.shape()[1], rows = saved.cells.shape()[0], width = w.shape()[1];
    const index_t sequences = (b.gradient().numel() - rows * width) / (units + width);
    matrices_in parts(b.gradient());
    const tensor<T, 2, D> dy = parts.next(rows, width), dh = parts.next(sequences, width).clone(),
                          dc = parts.next(sequences, units).clone();
    const auto dx = made_gradient<T, D>::of_first(b, saved.gates.shape());
    // With a projection: the sum of the gradients of each h', and what it makes of them.
    tensor<T, 2, D> dh_all, dm, zero;
    if constexpr (Projected) {
      dh_all = tensor<T, 2, D>::uninitialized({{rows, width}});
      dm = tensor<T, 2, D>::uninitialized({{sequences, units}});
      zero = zeros<T, D>({sequences, units});
    }
    op.steps.each_back([&](index_t row, index_t n) {
      const auto gates = rows_of(saved.gates, row, n), before = rows_of(saved.cells, row, n),
                 to = rows_of(dx.values, row, n), dhn = rows_of(dh, 0, n), dcn = rows_of(dc, 0, n),
                 dyn = rows_of(dy, row, n);
      auto first = piece_of(dhn), second = piece_of(dyn);
      if constexpr (Projected) {
        const auto all = rows_of(dh_all, row, n);
        write(dhn + dyn, all);
        multiply_into(all, b.template operand<4>(), rows_of(dm, 0, n), false);
        first = piece_of(dm);
        second = piece_of(zero);
      }
      const auto from = [&](int k) { return piece_of(gates, k, units); };
      const auto piece = [&](int k) { return piece_of(to, k, units); };
      run_units<ops::lstm_units::reverse, T, D>(
          n, units, {from(0), from(1), from(2), from(3), piece_of(before), first, second, piece_of(dcn)},
          {piece(0), piece(1), piece(2), piece(3), piece_of(dcn)});
      multiply_into(to, w, dhn, false);
    });
    dx.finish();
    write_operand<2>(b, dh);
    write_operand<3>(b, dc);
    if (b.template wants<1>()) {
      matrices_in results(b.result());
      multiply_into_operand<1>(b, dx.values.transpose(),
                               states_before(op, results.next(rows, width), b.template operand<2>()));
    }
    if constexpr (Projected) {
      if (b.template wants<4>()) {
        const auto m = tensor<T, 2, D>::uninitialized({{rows, units}});
        const auto from = [&](int k) { return piece_of(saved.gates, k, units); };
        run_units<ops::lstm_units::unprojected, T, D>(
            rows, units, {from(3), from(0), from(1), from(2), piece_of(saved.cells)}, {piece_of(m)});
        multiply_into_operand<4>(b, dh_all.transpose(), m);
      }
    }
  }
};

template <device D>
struct kernels<ops::lstm_op, D> : lstm_kernels<D, false> {};
template <device D>
struct kernels<ops::projected_lstm_op, D> : lstm_kernels<D, true> {};

}  // namespace detail

/// The recurrence of an LSTM alone: x (rows,4H) is what the inputs add to the gates i, f, g, o of each element, with
/// the biases; w (4H,H) are the weights of the state before, h and c (N,H) the states before the first element. Gives
/// the outputs (rows,H), then the last h and c (N,H), one behind the other in a tensor of rank 1. With a projection p
/// (P,H) w is (4H,P), h (N,P), and outputs have P elements. nn::lstm is the layer. Derivative: backpropagation through
/// time. Errors: shape_error.
///
///     tensor all = lstm_steps(sequence_steps::even(20, 8), linear(x, w_ih, bias), w_hh, h0, c0);
template <class X, class W, class H, class C>
  requires detail::takes_operands<ops::lstm_op, X, W, H, C>
detail::kernel_of<ops::lstm_op, X, W, H, C> lstm_steps(const sequence_steps& steps, X&& x, W&& w, H&& h, C&& c) {
  return detail::make_kernel(ops::lstm_op(steps), std::forward<X>(x), std::forward<W>(w), std::forward<H>(h),
                             std::forward<C>(c));
}
template <class X, class W, class H, class C, class P>
  requires detail::takes_operands<ops::projected_lstm_op, X, W, H, C, P>
detail::kernel_of<ops::projected_lstm_op, X, W, H, C, P> lstm_steps(const sequence_steps& steps, X&& x, W&& w, H&& h,
                                                                    C&& c, P&& p) {
  return detail::make_kernel(ops::projected_lstm_op(steps), std::forward<X>(x), std::forward<W>(w), std::forward<H>(h),
                             std::forward<C>(c), std::forward<P>(p));
}
SINTER_RECURRENT_REJECTIONS(lstm_steps, ops::lstm_op)

}  // namespace sinter

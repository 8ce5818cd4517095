// tests/kernels/recurrence.hpp: recurrent ops in double, sequence by sequence and unit by unit.
#pragma once

#include <sinter/sequences.hpp>

#include <cmath>
#include <vector>

namespace kernel_table {

/// Three sequences of 4, 3 and 1 elements, of a batch of four.
inline sinter::sequence_steps uneven_steps() { return sinter::sequence_steps({3, 2, 2, 1}); }

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One step of a unit: what the inputs and what the state add to each gate => h'; the cell c changes in place.
using unit = double (*)(const std::vector<double>& x, const std::vector<double>& s, double h, double& c);
inline double lstm_unit(const std::vector<double>& x, const std::vector<double>& s, double, double& c) {
  c = logistic(x[1] + s[1]) * c + logistic(x[0] + s[0]) * std::tanh(x[2] + s[2]);
  return logistic(x[3] + s[3]) * std::tanh(c);
}
inline double gru_unit(const std::vector<double>& x, const std::vector<double>& s, double h, double&) {
  const double r = logistic(x[0] + s[0]), z = logistic(x[1] + s[1]), n = std::tanh(x[2] + r * s[2]);
  return (1 - z) * n + z * h;
}
inline double rnn_unit(const std::vector<double>& x, const std::vector<double>& s, double, double&) {
  return std::tanh(x[0] + s[0]);
}

/// The outputs of uneven_steps(), then the last states, one behind the other. What is undefined is left out.
inline sinter::tensor<double, 1> recurrence_of(unit f, bool from_end, const sinter::tensor<double, 2>& x,
                                               const sinter::tensor<double, 2>& w, const sinter::tensor<double, 2>& b,
                                               const sinter::tensor<double, 2>& h0, const sinter::tensor<double, 2>& c0,
                                               const sinter::tensor<double, 2>& p) {
  using sinter::index_t;
  const sinter::sequence_steps steps = uneven_steps();
  const index_t width = h0.shape()[1], units = c0.defined() ? c0.shape()[1] : width, gates = x.shape()[1] / units;
  const sinter::tensor<double, 2> outputs = sinter::zeros<double>({x.shape()[0], width});
  const auto h = h0.clone(), c = c0.defined() ? c0.clone() : sinter::zeros<double>(h0.shape());
  for (index_t n = 0; n < steps.sequences(); ++n) {
    std::vector<index_t> rows;  // of this sequence
    index_t first = 0;
    for (index_t t = 0; t < steps.count() && steps.size_of(t) > n; first += steps.size_of(t++))
      rows.push_back(first + n);
    if (from_end) std::reverse(rows.begin(), rows.end());
    for (const index_t row : rows) {
      std::vector<double> next;
      for (index_t j = 0; j < units; ++j) {
        std::vector<double> in, state;
        for (index_t k = 0; k < gates; ++k) {
          double sum = b.defined() ? b(0, k * units + j) : 0;
          for (index_t i = 0; i < width; ++i) sum += w(k * units + j, i) * h(n, i);
          in.push_back(x(row, k * units + j));
          state.push_back(sum);
        }
        next.push_back(f(in, state, h(n, p.defined() ? 0 : j), c(n, j)));
      }
      for (index_t i = 0; i < width; ++i) {
        double value = p.defined() ? 0 : next[static_cast<std::size_t>(i)];
        for (index_t j = 0; p.defined() && j < units; ++j) value += p(i, j) * next[static_cast<std::size_t>(j)];
        h(n, i) = outputs(row, i) = value;
      }
    }
  }
  if (c0.defined()) return concat(0, outputs.flatten(), h.flatten(), c.flatten());
  return concat(0, outputs.flatten(), h.flatten());
}

}  // namespace kernel_table

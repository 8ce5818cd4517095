// sinter/optim/lbfgs.hpp: L-BFGS, which evaluates the loss several times in a step.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

enum class line_search { none, strong_wolfe };

struct lbfgs_options {
  double lr = 1;
  index_t max_iter = 20;                           ///< iterations of a step
  std::optional<index_t> max_eval = std::nullopt;  ///< evaluations of the loss in a step; std::nullopt: max_iter 5 / 4
  double tolerance_grad = 1e-7;                    ///< a step ends where no element of the gradient is larger
  double tolerance_change = 1e-9;                  ///< or where parameters or loss change less
  index_t history_size = 100;                      ///< of changes that are kept
  line_search line_search_fn = line_search::none;
};

namespace detail {

/// A parameter of any type and device, as doubles on the host.
class host_parameter {
 public:
  explicit host_parameter(index_t n) : numel(n) {}
  host_parameter(const host_parameter&) = delete;
  host_parameter& operator=(const host_parameter&) = delete;
  virtual ~host_parameter() = default;
  virtual void read(double* to) const = 0;
  virtual void read_grad(double* to) const = 0;  ///< zeros where it has none
  virtual void write(const double* from) const = 0;
  virtual void zero_grad() const = 0;
  const index_t numel;
};

template <class T, device D>
class typed_host_parameter final : public host_parameter {
 public:
  explicit typed_host_parameter(const flat_parameter<T, D>& p) : host_parameter(p.numel()), parameter_(p) {}
  void read(double* to) const override { convert(parameter_.flat(), to); }
  void read_grad(double* to) const override {
    if (parameter_.has_grad() && numel > 0) convert(wrap<D>(parameter_.grad(), extents<1>{{numel}}), to);
    else
      for (index_t i = 0; i < numel; ++i) to[i] = 0;
  }
  void write(const double* from) const override {
    const auto values = tensor<T, 1>::uninitialized({{numel}});
    for (index_t i = 0; i < numel; ++i) values.data()[i] = static_cast<T>(from[i]);
    copy(values, parameter_.flat());
    parameter_.changed();
  }
  void zero_grad() const override { parameter_.zero_grad(); }

 private:
  static void convert(const tensor<T, 1, D>& from, double* to) {
    const auto values = from.template to<cpu>();
    for (index_t i = 0; i < values.numel(); ++i) to[i] = static_cast<double>(values.data()[i]);
  }
  flat_parameter<T, D> parameter_;
};

/// lbfgs. `Vector` is a parameter so that only files which use it compile its functions.
template <class Vector>
class lbfgs_of : public optimizer {
 public:
  using options_type = lbfgs_options;
  using vector = Vector;

  /// The parameters of a module, a variable, or a range of either. Errors: value_error for a setting that makes no
  /// sense, for a source without tracked parameters and for a table whose gradient is held by rows.
  template <class Source>
    requires(is_fitting<source_mistake<Source>>)
  explicit lbfgs_of(const Source& source, const lbfgs_options& options = {}) : lbfgs_of(checked{}, options) {
    for_each_variable(source, [this](const std::string& name, const auto& v) {
      using V = bare<decltype(v)>;
      const flat_parameter<element_of<V>, device_of<V>> one(name, v);
      if (one.is_row_sparse()) refuse_rows(name);
      numel_ += one.numel();
      parameters_.push_back(sinter::detail::make_owned<typed_host_parameter<element_of<V>, device_of<V>>>(one));
    });
    if (parameters_.empty()) throw value_error("lbfgs: no tracked parameters to optimise");
  }
  template <class Source, class Problem = typename source_mistake<Source>::problem,
            class Fix = typename source_mistake<Source>::fix>
  explicit lbfgs_of(const Source&, const lbfgs_options& = {}) = delete;

  /// Up to max_iter iterations; the loss before them. What closure() throws leaves the parameters as the last complete
  /// iteration did.
  template <class F>
    requires requires(const F& closure) { closure(); }
  double step(const F& closure) {
    return run([&closure]() -> double {
      const auto loss = closure();
      if constexpr (requires { loss.item(); }) return static_cast<double>(loss.item());
      else return static_cast<double>(loss);
    });
  }

  void zero_grad() const;
  const lbfgs_options& options() const { return options_; }
  /// Number of parameters.
  std::size_t size() const { return parameters_.size(); }
  /// Calls of closures, and iterations, of all steps.
  index_t evaluations() const { return evaluations_; }
  index_t iterations() const { return iterations_; }

 private:
  struct checked {};
  lbfgs_of(checked, const lbfgs_options& options);
  double run(const std::function<double()>& closure);
  /// A point on the line that is searched.
  struct point {
    double t, loss, slope;
    vector gradient;
  };
  point search(const std::function<point(double)>& at, double t, const point& start, double largest, index_t most);
  void remember(const vector& gradient);
  void direct(const vector& gradient);
  vector gather(void (host_parameter::*read)(double*) const) const;
  void scatter(const vector& x) const;

  lbfgs_options options_;
  std::vector<sinter::detail::owned_ptr<host_parameter>> parameters_;
  index_t numel_ = 0, evaluations_ = 0, iterations_ = 0;
  vector direction_, gradient_before_;
  std::vector<std::pair<vector, vector>> history_;  ///< changes of the parameters and of the gradient
  double length_ = 0, scale_ = 1;                   ///< of the last step; of the first approximation of the inverse
};

#if SINTER_DEFINES

template <class Vector>
double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
template <class Vector>
void add_times(Vector& to, double factor, const Vector& x) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * x[i];
}
template <class Vector>
double largest_of(const Vector& x) {
  double most = 0;
  for (const double one : x) most = std::fabs(one) > most || std::isnan(one) ? std::fabs(one) : most;
  return most;
}

/// Where the cubic through two points with these slopes is least, within [low, high]; their middle where it has none.
SINTER_SHARED double least_of_cubic(double x1, double f1, double g1, double x2, double f2, double g2, double low,
                                    double high) {
  const double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2), square = d1 * d1 - g1 * g2;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
                             : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2));
  return at < low ? low : at > high ? high : at;
}

template <class Vector>
lbfgs_of<Vector>::lbfgs_of(checked, const lbfgs_options& options) : optimizer(options.lr), options_(options) {
  check_setting("lbfgs", "tolerance_grad", options.tolerance_grad);
  check_setting("lbfgs", "tolerance_change", options.tolerance_change);
  if (options.max_iter < 1 || options.history_size < 1 || (options.max_eval && *options.max_eval < 1))
    throw value_error("lbfgs: max_iter, max_eval and history_size must be at least 1");
}

template <class Vector>
void lbfgs_of<Vector>::zero_grad() const {
  for (const auto& p : parameters_) p->zero_grad();
}

template <class Vector>
Vector lbfgs_of<Vector>::gather(void (host_parameter::*read)(double*) const) const {
  vector all(static_cast<std::size_t>(numel_));
  double* to = all.data();
  for (const auto& p : parameters_) {
    ((*p).*read)(to);
    to += p->numel;
  }
  return all;
}
template <class Vector>
void lbfgs_of<Vector>::scatter(const vector& x) const {
  const double* from = x.data();
  for (const auto& p : parameters_) {
    p->write(from);
    from += p->numel;
  }
}

/// Takes the last step and the gradient behind it into the history.
template <class Vector>
void lbfgs_of<Vector>::remember(const vector& gradient) {
  vector y = gradient, s = direction_;
  add_times(y, -1, gradient_before_);
  for (double& one : s) one *= length_;
  const double ys = dot(y, s);
  if (!(ys > 1e-10)) return;
  scale_ = ys / dot(y, y);
  if (static_cast<index_t>(history_.size()) == options_.history_size) history_.erase(history_.begin());
  history_.emplace_back(std::move(s), std::move(y));
}

/// The direction: minus the approximate inverse of the second derivatives times the gradient.
template <class Vector>
void lbfgs_of<Vector>::direct(const vector& gradient) {
  direction_.assign(gradient.size(), 0);
  add_times(direction_, -1, gradient);
  vector parts(history_.size());
  for (std::size_t i = history_.size(); i-- > 0;) {
    const auto& [s, y] = history_[i];
    parts[i] = dot(s, direction_) / dot(y, s);
    add_times(direction_, -parts[i], y);
  }
  for (double& one : direction_) one *= scale_;
  for (std::size_t i = 0; i < history_.size(); ++i) {
    const auto& [s, y] = history_[i];
    add_times(direction_, parts[i] - dot(y, direction_) / dot(y, s), s);
  }
}

/// A point that meets the strong Wolfe conditions, or the best that was seen in `most` evaluations. `largest`: element
/// of the direction.
template <class Vector>
typename lbfgs_of<Vector>::point lbfgs_of<Vector>::search(const std::function<point(double)>& at, double t,
                                                          const point& start, double largest, index_t most) {
  constexpr double enough = 1e-4, flat = 0.9;
  const auto is_high = [&](const point& p) { return p.loss > start.loss + enough * p.t * start.slope; };
  const auto is_flat = [&](const point& p) { return std::fabs(p.slope) <= -flat * start.slope; };
  point before = start, now = at(t);
  index_t n = 0;
  for (;; ++n) {  // until a point that will do lies between `before` and `now`
    if (n == most) {
      if (start.loss <= now.loss) return start;
      return now;
    }
    if (is_high(now) || (n > 1 && now.loss >= before.loss)) break;
    if (is_flat(now)) return now;
    if (now.slope >= 0) break;
    const double next = least_of_cubic(before.t, before.loss, before.slope, now.t, now.loss, now.slope,
                                       now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = std::exchange(now, at(next));
  }
  point ends[2] = {std::move(before), std::move(now)};
  int low = ends[0].loss <= ends[1].loss ? 0 : 1;
  bool crept = false;
  for (; n < most && !(std::fabs(ends[1].t - ends[0].t) * largest < options_.tolerance_change); ++n) {
    const double left = ends[0].t < ends[1].t ? ends[0].t : ends[1].t;
    const double right = ends[0].t < ends[1].t ? ends[1].t : ends[0].t;
    double next =
        least_of_cubic(ends[0].t, ends[0].loss, ends[0].slope, ends[1].t, ends[1].loss, ends[1].slope, left, right);
    const double margin = 0.1 * (right - left);
    const bool near_end = right - next < margin || next - left < margin;
    if (near_end && (crept || next >= right || next <= left)) {
      next = std::fabs(next - right) < std::fabs(next - left) ? right - margin : left + margin;
      crept = false;
    } else {
      crept = near_end;
    }
    point p = at(next);
    if (is_high(p) || p.loss >= ends[low].loss) {
      ends[1 - low] = std::move(p);
      low = ends[0].loss <= ends[1].loss ? 0 : 1;
      continue;
    }
    if (is_flat(p)) return p;
    if (p.slope * (ends[1 - low].t - ends[low].t) >= 0) ends[1 - low] = std::move(ends[low]);
    ends[low] = std::move(p);
  }
  return ends[low];
}

template <class Vector>
double lbfgs_of<Vector>::run(const std::function<double()>& closure) {
  const auto evaluate = [&] {
    ++evaluations_;
    return closure();
  };
  const index_t begin = evaluations_, most = options_.max_eval.value_or(options_.max_iter * 5 / 4);
  point now{0, evaluate(), 0, gather(&host_parameter::read_grad)};
  const double first_loss = now.loss;
  const auto is_done = [&] { return largest_of(now.gradient) <= options_.tolerance_grad; };
  if (is_done()) return first_loss;
  for (index_t n = 1;; ++n) {
    ++iterations_;
    if (iterations_ > 1) remember(now.gradient);
    direct(now.gradient);
    gradient_before_ = now.gradient;
    const double loss_before = now.loss, largest = largest_of(direction_);
    double sum = 0;
    for (const double one : now.gradient) sum += std::fabs(one);
    length_ = (iterations_ == 1 && sum > 1 ? 1 / sum : 1) * lr();
    now.t = 0;
    now.slope = dot(now.gradient, direction_);
    if (now.slope > -options_.tolerance_change) break;
    const vector x = gather(&host_parameter::read);
    const auto go = [&](double t) {
      vector there = x;
      add_times(there, t, direction_);
      scatter(there);
    };
    try {
      if (options_.line_search_fn == line_search::strong_wolfe) {
        const auto at = [&](double t) {
          go(t);
          point p{t, evaluate(), 0, gather(&host_parameter::read_grad)};
          p.slope = dot(p.gradient, direction_);
          return p;
        };
        now = search(at, length_, now, largest, most - (evaluations_ - begin));
        length_ = now.t;
        go(length_);
      } else {
        go(length_);
        if (n != options_.max_iter) now = {0, evaluate(), 0, gather(&host_parameter::read_grad)};
      }
    } catch (...) {
      scatter(x);
      throw;
    }
    if (n == options_.max_iter || evaluations_ - begin >= most || is_done() ||
        largest * length_ <= options_.tolerance_change || std::fabs(now.loss - loss_before) < options_.tolerance_change)
      break;
  }
  return first_loss;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.LBFGS: steps along the direction that the last `history_size` changes of parameters and gradient
/// suggest for a quadratic loss, for few parameters and whole data sets. step(closure) calls closure(), which zeroes
/// the gradients, computes the loss, calls backward() and returns the loss. Without a line search each step has the
/// length lr; with line_search::strong_wolfe the loss goes down. All parameters, of any types and devices, are one
/// vector of doubles on the host, and so are the 2 history_size vectors that are kept. One group. J. Nocedal and S.
/// Wright, "Numerical optimization", 2006, algorithms 7.5, 3.5 and 3.6.
///
///     optim::lbfgs optimizer(model, {.line_search_fn = optim::line_search::strong_wolfe});
///     const double loss = optimizer.step([&] {
///       optimizer.zero_grad();
///       variable loss = mse_loss(model(x), y);
///       loss.backward();
///       return loss;
///     });
using lbfgs = detail::lbfgs_of<std::vector<double>>;

#if SINTER_COMPILED
namespace detail {
SINTER_INSTANCE class lbfgs_of<std::vector<double>>;
}
#endif

}  // namespace sinter::optim

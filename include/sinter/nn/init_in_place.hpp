// sinter/nn/init_in_place.hpp: new initial values for parameters of a module that is built, as torch.nn.init.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include "sinter/expr/declare.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/nn/init.hpp"

namespace sinter {

// Names in messages.
template <class>
struct initial_values_for_what_is_no_parameter;
struct pass_a_parameter_of_a_module_a_variable_or_a_tensor_of_floating_point;
template <int R>
struct initial_values_that_parameters_of_this_rank_do_not_have;
template <int Least, int Most>
struct pass_a_parameter_of_rank;
struct write_fan_in_or_fan_out;
struct write_activation_relu_or_another;

namespace nn::init {

/// What follows a layer, for calculate_gain().
enum class activation { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// Whether weights keep the variance of what a layer computes (inputs of a unit) or of its gradients (outputs).
enum class fan { in, out };

namespace detail {
template <class Problem, class Fix>
void refuse_text() = delete;
/// A setting of enum E. From text, as PyTorch writes it, it is a compile error that names `Problem` and `Fix`.
template <class E, class Problem, class Fix>
struct not_text {
  E value;
  constexpr not_text(E e) : value(e) {}  // NOLINT: implicit on purpose
  template <std::convertible_to<const char*> Text>
  not_text(const Text&) : value() {  // NOLINT
    refuse_text<Problem, Fix>();
  }
  constexpr operator E() const { return value; }  // NOLINT
};
}  // namespace detail

struct kaiming_options {
  double a = 0;  ///< slope of leaky_relu below 0
  detail::not_text<fan, option_that_is_text, write_fan_in_or_fan_out> mode = fan::in;
  detail::not_text<activation, option_that_is_text, write_activation_relu_or_another> nonlinearity =
      activation::leaky_relu;
};

/// The factor by which a nonlinearity makes deviations smaller, to be made good by weights: 1 for linear layers and
/// sigmoid, 5 / 3 for tanh, sqrt(2) for relu, sqrt(2 / (1 + slope^2)) for leaky_relu, 3 / 4 for selu. PyTorch's.
///
///     nn::init::xavier_uniform_(fc.weight, gen, nn::init::calculate_gain(nn::init::activation::tanh));
SINTER_SHARED_COLD double calculate_gain(activation of, double slope = 0.01);

namespace detail {

using sinter::detail::bare;

template <class P>
inline constexpr bool is_target = false;
template <floating_element T, int R, device D>
inline constexpr bool is_target<tensor<T, R, D>> = true;
template <floating_element T, int R, device D>
inline constexpr bool is_target<variable<T, R, D, 1>> = true;

template <class P, int Least, int Most>
constexpr auto find_target_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_target<P>)
    return mistake<initial_values_for_what_is_no_parameter<P>,
                   pass_a_parameter_of_a_module_a_variable_or_a_tensor_of_floating_point>{};
  else if constexpr (rank_of<P> < Least || rank_of<P> > Most)
    return mistake<initial_values_that_parameters_of_this_rank_do_not_have<rank_of<P>>,
                   pass_a_parameter_of_rank<Least, Most>>{};
  else return sinter::detail::fitting<void>{};
}
template <class P, int Least, int Most>
using target_mistake = decltype(find_target_mistake<P, Least, Most>());
/// A parameter of a rank from Least to Most.
template <class P, int Least = 0, int Most = 8>
concept target = sinter::detail::is_fitting<target_mistake<P, Least, Most>>;

/// Errors: value_error for a parameter without a value.
SINTER_SHARED_COLD void require_built(std::string_view op, bool defined);

/// Writes a tensor into the memory of a parameter.
template <class P, class V>
void write(std::string_view op, const P& p, const V& value) {
  require_built(op, p.defined());
  sinter::detail::plain(p).in_place() = value;
}
template <class P>
void write_constant(std::string_view op, const P& p, double value) {
  require_built(op, p.defined());
  sinter::detail::plain(p).fill_(static_cast<element_of<P>>(value));
}
/// The same of numbers in row-major order.
template <class P>
void write_numbers(std::string_view op, const P& p, const std::vector<double>& numbers) {
  using T = element_of<P>;
  const auto all = tensor<T, P::rank>::uninitialized(p.shape());
  for (std::size_t i = 0; i < numbers.size(); ++i) all.data()[i] = static_cast<T>(numbers[i]);
  write(op, p, all.template to<device_of<P>>());
}

/// Inputs or outputs of a unit.
SINTER_SHARED_COLD double fan_of(const index_t* shape, int rank, fan mode);
/// The deviation of kaiming's weights.
SINTER_SHARED_COLD double kaiming_deviation(const index_t* shape, int rank, const kaiming_options& o);

// Elements in row-major order. `Numbers` is a parameter so that only files which call these compile what they call.
template <class Numbers = std::vector<double>>
SINTER_COLD Numbers orthogonal(generator& gen, index_t rows, index_t columns, double gain);
template <class Numbers = std::vector<double>>
SINTER_COLD Numbers truncated(generator& gen, index_t n, double mean, double std, double a, double b);
template <class Numbers = std::vector<double>>
SINTER_COLD Numbers sparse(generator& gen, index_t rows, index_t columns, double sparsity, double std);
template <class Numbers = std::vector<double>>
SINTER_COLD Numbers dirac(const index_t* shape, int rank, index_t groups);

template <class P>
void write_uniform(std::string_view op, const P& p, generator& gen, double a, double b) {
  using T = element_of<P>;
  write(op, p, uniform<T, device_of<P>>(gen, static_cast<T>(a), static_cast<T>(b), p.shape()));
}
template <class P>
void write_normal(std::string_view op, const P& p, generator& gen, double mean, double std) {
  using T = element_of<P>;
  write(op, p, normal<T, device_of<P>>(gen, static_cast<T>(mean), static_cast<T>(std), p.shape()));
}

}  // namespace detail

/// All elements `value`. `p` is a parameter of any module, a variable, or a tensor, also where it says so below; what
/// is written counts as a change, so that graphs of before cannot be used.
///
///     nn::init::constant_(fc.bias, 0.1);
template <detail::target P>
void constant_(const P& p, double value) {
  detail::write_constant("constant_", p, value);
}
template <detail::target P>
void zeros_(const P& p) {
  detail::write_constant("zeros_", p, 0);
}
template <detail::target P>
void ones_(const P& p) {
  detail::write_constant("ones_", p, 1);
}

/// U(a, b).
template <detail::target P>
void uniform_(const P& p, generator& gen, double a = 0, double b = 1) {
  detail::write_uniform("uniform_", p, gen, a, b);
}

/// N(mean, std^2).
template <detail::target P>
void normal_(const P& p, generator& gen, double mean = 0, double std = 1) {
  detail::write_normal("normal_", p, gen, mean, std);
}

/// N(mean, std^2) without what lies outside [a, b]; a bound may be infinite. C. P. Robert, Statistics and Computing 5
/// (1995), where [a, b] is far from the mean. Errors: value_error unless a < b and std > 0, or for a mean or std that
/// is not finite.
///
///     nn::init::trunc_normal_(fc.weight, gen, 0, 0.02, -0.04, 0.04);
template <detail::target P>
void trunc_normal_(const P& p, generator& gen, double mean = 0, double std = 1, double a = -2, double b = 2) {
  detail::write_numbers("trunc_normal_", p, detail::truncated(gen, p.numel(), mean, std, a, b));
}

/// U(-b, b) with b = gain sqrt(6 / (inputs + outputs)) of a unit, for weights (out, in, ...). X. Glorot and Y. Bengio,
/// AISTATS 2010.
template <detail::target<2> P>
void xavier_uniform_(const P& p, generator& gen, double gain = 1) {
  detail::write("xavier_uniform_", p, xavier_uniform<element_of<P>, device_of<P>>(gen, p.shape(), gain));
}

/// N(0, s^2) with s = gain sqrt(2 / (inputs + outputs)), likewise.
template <detail::target<2> P>
void xavier_normal_(const P& p, generator& gen, double gain = 1) {
  detail::write("xavier_normal_", p, xavier_normal<element_of<P>, device_of<P>>(gen, p.shape(), gain));
}

/// U(-b, b) with b = gain sqrt(3 / n), where n are the inputs, or the outputs, of a unit, and the gain that of the
/// nonlinearity, for weights (out, in, ...). K. He et al., ICCV 2015. The defaults are PyTorch's: a gain of sqrt(2), as
/// of relu.
///
///     nn::init::kaiming_uniform_(conv.weight, gen, {.mode = nn::init::fan::out, .nonlinearity = nn::init::activation::relu});
template <detail::target<2> P>
void kaiming_uniform_(const P& p, generator& gen, const kaiming_options& options = {}) {
  const double b = std::sqrt(3.) * detail::kaiming_deviation(p.shape().data(), P::rank, options);
  detail::write_uniform("kaiming_uniform_", p, gen, -b, b);
}

/// N(0, s^2) with s = gain / sqrt(n), likewise.
template <detail::target<2> P>
void kaiming_normal_(const P& p, generator& gen, const kaiming_options& options = {}) {
  detail::write_normal("kaiming_normal_", p, gen, 0, detail::kaiming_deviation(p.shape().data(), P::rank, options));
}

/// gain times a matrix (rows, product of the other extents) whose rows, or columns where these are fewer, are
/// orthonormal, drawn uniformly among all of these. On the host, with rows^2 columns operations. A. Saxe et al., ICLR
/// 2014.
///
///     nn::init::orthogonal_(rnn.weight_hh, gen);
template <detail::target<2> P>
void orthogonal_(const P& p, generator& gen, double gain = 1) {
  const index_t rows = p.shape()[0], n = p.numel();
  detail::write_numbers("orthogonal_", p, detail::orthogonal(gen, rows, n == 0 ? 0 : n / rows, gain));
}

/// N(0, std^2), but in each column ceil(sparsity rows) zeros, at random rows. J. Martens, ICML 2010. Errors:
/// value_error for a sparsity beyond [0, 1].
template <detail::target<2, 2> P>
void sparse_(const P& p, generator& gen, double sparsity, double std = 0.01) {
  detail::write_numbers("sparse_", p, detail::sparse(gen, p.shape()[0], p.shape()[1], sparsity, std));
}

/// The identity: 1 where row and column are the same.
template <detail::target<2, 2> P>
void eye_(const P& p) {
  detail::write("eye_", p, eye<element_of<P>, device_of<P>>(p.shape()[0], p.shape()[1]));
}

/// For weights of a convolution that passes its inputs on, as many channels as there are: 1 in the middle of the
/// kernel from an input to the same output, in each of `groups` groups. Errors: value_error unless groups divide the
/// outputs.
template <detail::target<3, 5> P>
void dirac_(const P& p, index_t groups = 1) {
  detail::write_numbers("dirac_", p, detail::dirac(p.shape().data(), P::rank, groups));
}

#define SINTER_DETAIL_NO_TARGET(name, least, most, ...)                                        \
  template <class P, class Problem = typename detail::target_mistake<P, least, most>::problem, \
            class Fix = typename detail::target_mistake<P, least, most>::fix>                  \
  void name(const P& __VA_OPT__(, ) __VA_ARGS__) = delete;
SINTER_DETAIL_NO_TARGET(constant_, 0, 8, double)
SINTER_DETAIL_NO_TARGET(zeros_, 0, 8)
SINTER_DETAIL_NO_TARGET(ones_, 0, 8)
SINTER_DETAIL_NO_TARGET(uniform_, 0, 8, generator&, double = 0, double = 1)
SINTER_DETAIL_NO_TARGET(normal_, 0, 8, generator&, double = 0, double = 1)
SINTER_DETAIL_NO_TARGET(trunc_normal_, 0, 8, generator&, double = 0, double = 1, double = -2, double = 2)
SINTER_DETAIL_NO_TARGET(xavier_uniform_, 2, 8, generator&, double = 1)
SINTER_DETAIL_NO_TARGET(xavier_normal_, 2, 8, generator&, double = 1)
SINTER_DETAIL_NO_TARGET(kaiming_uniform_, 2, 8, generator&, const kaiming_options& = {})
SINTER_DETAIL_NO_TARGET(kaiming_normal_, 2, 8, generator&, const kaiming_options& = {})
SINTER_DETAIL_NO_TARGET(orthogonal_, 2, 8, generator&, double = 1)
SINTER_DETAIL_NO_TARGET(sparse_, 2, 2, generator&, double, double = 0.01)
SINTER_DETAIL_NO_TARGET(eye_, 2, 2)
SINTER_DETAIL_NO_TARGET(dirac_, 3, 5, index_t = 1)
#undef SINTER_DETAIL_NO_TARGET

#if SINTER_DEFINES

SINTER_SHARED_COLD double calculate_gain(activation of, double slope) {
  switch (of) {
    case activation::tanh:
      return 5. / 3;
    case activation::relu:
      return std::sqrt(2.);
    case activation::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case activation::selu:
      return 0.75;
    case activation::linear:
    case activation::sigmoid:
      break;
  }
  return 1;
}

namespace detail {

SINTER_SHARED_COLD void require_built(std::string_view op, bool defined) {
  if (!defined) sinter::detail::refuse<value_error>({op, ": the parameter is empty; build the module before"});
}

SINTER_SHARED_COLD double fan_of(const index_t* shape, int rank, fan mode) {
  double n = static_cast<double>(shape[mode == fan::in ? 1 : 0]);
  for (int d = 2; d < rank; ++d) n *= static_cast<double>(shape[d]);
  return n;
}
SINTER_SHARED_COLD double kaiming_deviation(const index_t* shape, int rank, const kaiming_options& o) {
  const double n = fan_of(shape, rank, o.mode);
  return n > 0 ? calculate_gain(o.nonlinearity, o.a) / std::sqrt(n) : 0;
}

/// Gram and Schmidt's vectors, which are those of a QR factorisation with a positive diagonal, so uniform (F. Mezzadri,
/// 2007); each is made orthogonal twice, which rounds as well as reflections do.
template <class Numbers>
SINTER_COLD Numbers orthogonal(generator& gen, index_t rows, index_t columns, double gain) {
  const index_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
  const tensor<double, 2> vectors = normal<double, cpu>(gen, 0, 1, extents<2>{{count, length}});
  Numbers all(static_cast<std::size_t>(rows * columns));
  for (index_t i = 0; i < count; ++i) {
    double* const v = vectors.data() + i * length;
    const auto dot = [&](const double* u) {
      double sum = 0;
      for (index_t k = 0; k < length; ++k) sum += u[k] * v[k];
      return sum;
    };
    for (index_t j = 0; j < 2 * i; ++j) {
      const double* const u = vectors.data() + (j % i) * length;
      const double part = dot(u);
      for (index_t k = 0; k < length; ++k) v[k] -= part * u[k];
    }
    const double norm = std::sqrt(dot(v));
    for (index_t k = 0; k < length; ++k) {
      v[k] /= norm;
      all[static_cast<std::size_t>(rows < columns ? i * columns + k : k * columns + i)] = gain * v[k];
    }
  }
  return all;
}

/// Draws again what is not taken: from N where that has much within [a, b]; else from U(a, b), or, in a long tail, from
/// the bound near the mean on with an exponential distribution (Robert), with the right chance to be taken.
template <class Numbers>
SINTER_COLD Numbers truncated(generator& gen, index_t n, double mean, double std, double a, double b) {
  if (!(a < b) || !(std > 0) || !std::isfinite(std) || !std::isfinite(mean))
    sinter::detail::refuse<value_error>(
        {"trunc_normal_: a must be below b, std above 0, and mean and std finite, but a ", a, ", b ", b, ", mean ",
         mean, " and std ", std, " are given"});
  const auto above = [&](double x) { return std::erfc((x - mean) / std / std::sqrt(2.)) / 2; };
  const bool from_normal = above(a) - above(b) > 0.3;
  const double peak = mean < a ? a : mean > b ? b : mean;
  const double offset = std::abs(peak - mean) / std;  // in deviations, as are all steps from the peak
  const bool from_tail = !from_normal && offset > 0 && !((b - a) / std * (offset > 1 ? offset : 1) <= 6);
  const double rate = (offset + std::hypot(offset, 2.)) / 2, toward = peak == a ? 1 : -1;
  Numbers all;
  while (index_t(all.size()) < n) {
    const extents<1> missing{{n - static_cast<index_t>(all.size())}};
    const tensor<double, 1> x = from_normal ? normal<double, cpu>(gen, mean, std, missing)
                                            : uniform<double, cpu>(gen, from_tail ? 0 : a, from_tail ? 1 : b, missing);
    const tensor<double, 1> chance = uniform<double, cpu>(gen, 0, 1, from_normal ? extents<1>{{0}} : missing);
    for (index_t i = 0; i < x.numel(); ++i) {
      double one = x.data()[i], height = 0;
      if (from_tail) {
        const double step = -std::log1p(-one) / rate;
        one = peak + toward * std * step;
        height = -0.5 * (step - 1 / rate) * (step - 1 / rate);
      } else if (!from_normal) {
        const double step = std::abs(one - peak) / std;
        height = -0.5 * step * (step + 2 * offset);
      }
      if (one >= a && one <= b && (from_normal || std::log(chance.data()[i]) <= height)) all.push_back(one);
    }
  }
  return all;
}

template <class Numbers>
SINTER_COLD Numbers sparse(generator& gen, index_t rows, index_t columns, double sparsity, double std) {
  if (!(sparsity >= 0 && sparsity <= 1))
    sinter::detail::refuse<value_error>({"sparse_: sparsity must be in [0, 1], but is ", sparsity});
  const tensor<double, 1> values = normal<double, cpu>(gen, 0, std, extents<1>{{rows * columns}});
  Numbers all(values.data(), values.data() + values.numel());
  const auto zeros = static_cast<index_t>(std::ceil(sparsity * static_cast<double>(rows)));
  for (index_t j = 0; j < columns; ++j) {
    const tensor<std::int64_t, 1> order = randperm<std::int64_t, cpu>(gen, rows);
    for (index_t i = 0; i < zeros; ++i) all[static_cast<std::size_t>(order.data()[i] * columns + j)] = 0;
  }
  return all;
}

template <class Numbers>
SINTER_COLD Numbers dirac(const index_t* shape, int rank, index_t groups) {
  if (groups < 1 || shape[0] % groups != 0)
    sinter::detail::refuse<value_error>({"dirac_: ", groups, " groups do not divide ", shape[0], " outputs"});
  index_t taps = 1, middle = 0;
  for (int d = 2; d < rank; ++d) {
    taps *= shape[d];
    middle = middle * shape[d] + shape[d] / 2;
  }
  Numbers all(static_cast<std::size_t>(shape[0] * shape[1] * taps));
  const index_t each = shape[0] / groups, passed = taps == 0 ? 0 : each < shape[1] ? each : shape[1];
  for (index_t g = 0; g < groups; ++g)
    for (index_t d = 0; d < passed; ++d)
      all[static_cast<std::size_t>(((g * each + d) * shape[1] + d) * taps + middle)] = 1;
  return all;
}

}  // namespace detail

#endif  // SINTER_DEFINES

#if SINTER_COMPILED
namespace detail {
SINTER_INSTANCE std::vector<double> orthogonal(generator&, index_t, index_t, double);
SINTER_INSTANCE std::vector<double> truncated(generator&, index_t, double, double, double, double);
SINTER_INSTANCE std::vector<double> sparse(generator&, index_t, index_t, double, double);
SINTER_INSTANCE std::vector<double> dirac(const index_t*, int, index_t);
}  // namespace detail
#endif

}  // namespace nn::init
}  // namespace sinter

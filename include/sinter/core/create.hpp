// sinter/core/create.hpp: new tensors (zeros, ones, full, arange, eye, from_data), copies between devices, wrapped
// memory.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "sinter/core/number.hpp"
#include "sinter/core/tensor.hpp"
#include "sinter/core/usage.hpp"

namespace sinter {

struct no_element_type;
struct write_full_less_float_greater;

namespace detail {

/// The shape of a model for new tensors.
template <expression E>
auto shape_like(const char* op, const E& e) {
  if constexpr (requires { e.defined(); }) {
    if (!e.defined()) refuse_undefined(op);
  }
  return e.shape();
}

/// Host memory -> a new tensor on D.
template <element T, device D, int R>
tensor<T, R, D> upload(const T* from, const extents<R>& shape) {
  auto t = tensor<T, R, D>::uninitialized(shape);
  const auto bytes = static_cast<std::size_t>(shape.numel()) * sizeof(T);
  if constexpr (is_cpu_v<D>) device_runtime<D>::copy_within(access::data(t), from, bytes);
  else device_runtime<D>::copy_from_host(access::data(t), from, bytes);
  return t;
}

template <element T, device D, int R, class F>
tensor<T, R, D> generate(const extents<R>& shape, F&& value_at) {
  auto host = tensor<T, R, cpu>::uninitialized(shape);
  T* to = access::data(host);
  for (index_t i = 0, n = shape.numel(); i < n; ++i) to[i] = value_at(i);
  if constexpr (std::is_same_v<D, cpu>) return host;
  else return upload<T, D>(to, shape);
}

/// Begin, end or step of arange, as given: integers exactly, other numbers in double, whatever the element type.
class arange_number {
 public:
  template <class A>
    requires(std::is_arithmetic_v<A> || narrow_element<A>)
  arange_number(A a)
      : real_(static_cast<double>(a)), is_whole_(fits_element<std::int64_t>(a)) {  // NOLINT: implicit on purpose
    if (is_whole_) whole_ = static_cast<std::int64_t>(a);
  }
  double real() const { return real_; }
  bool is_whole() const { return is_whole_; }
  std::int64_t whole() const { return whole_; }

 private:
  double real_;
  std::int64_t whole_ = 0;
  bool is_whole_;
};

/// Errors: value_error unless x fits T.
template <class T>
void check_fits(const char* op, auto x) {
  if (!fits_element<T>(x)) refuse<value_error>({op, ": ", x, " does not fit elements of type ", element_name<T>()});
}

}  // namespace detail

/// Elements that are not initialised. Where no element type is named, here as below, it is float.
template <element T = float, device D = cpu, int R>
tensor<T, R, D> empty(const extents<R>& shape) {
  return tensor<T, R, D>::uninitialized(shape);
}
template <element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> empty(const index_t (&shape)[R]) {
  return empty<T, D>(detail::to_extents(shape));
}

/// All elements `value`. Shape is a list or extents; without one, a scalar (rank 0).
///
///     tensor<float, 2> a = full<float>({2, 3}, 0.5f);
template <element T, device D = cpu, int R>
tensor<T, R, D> full(const extents<R>& shape, detail::number<T> value) {
  auto t = tensor<T, R, D>::uninitialized(shape);
  if (t.numel() > 0)
    detail::access::make<T, R, D>(detail::access::storage_of(t), detail::access::data(t), shape, t.strides()) =
        T(value);
  return t;
}
template <element T, device D = cpu, std::size_t R>
tensor<T, int{R}, D> full(const index_t (&shape)[R], detail::number<T> value) {
  return full<T, D>(detail::to_extents(shape), value);
}
template <element T, device D = cpu>
tensor<T, 0, D> full(detail::number<T> value) {
  return full<T, D>(extents<0>{}, value);
}

/// Floats, where the number is one.
template <std::size_t R>
tensor<float, int{R}, cpu> full(const index_t (&shape)[R], double value) {
  return full<float, cpu>(detail::to_extents(shape), value);
}
template <std::size_t R, std::integral V, class Problem = no_element_type, class Fix = write_full_less_float_greater>
tensor<float, int{R}, cpu> full(const index_t (&)[R], V) = delete;

/// Of one number: a scalar (rank 0) of float.
template <int = 0, std::floating_point V>
tensor<float, 0, cpu> full(V value) {
  return full<float, cpu>(extents<0>{}, value);
}

/// All elements 0.
template <element T = float, device D = cpu, int R>
tensor<T, R, D> zeros(const extents<R>& shape) {
  return full<T, D>(shape, T(0));
}
template <element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> zeros(const index_t (&shape)[R]) {
  return full<T, D>(detail::to_extents(shape), T(0));
}
template <element T = float, device D = cpu>
tensor<T, 0, D> zeros() {
  return full<T, D>(extents<0>{}, T(0));
}

/// All elements 1.
template <element T = float, device D = cpu, int R>
tensor<T, R, D> ones(const extents<R>& shape) {
  return full<T, D>(shape, T(1));
}
template <element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> ones(const index_t (&shape)[R]) {
  return full<T, D>(detail::to_extents(shape), T(1));
}
template <element T = float, device D = cpu>
tensor<T, 0, D> ones() {
  return full<T, D>(extents<0>{}, T(1));
}

// What has its braces forgotten: name(extents...), behind other parameters.
#define SINTER_SHAPE_WITHOUT_BRACES(name, ...)                                                                  \
  template <class T = float, class D = cpu, std::integral... I, class Problem = extents_that_are_not_in_braces, \
            class Fix = write_them_in_braces>                                                                   \
    requires(sizeof...(I) > 0)                                                                                  \
  tensor<T, int{sizeof...(I)}, D> name(__VA_ARGS__ __VA_OPT__(, ) I...) = delete;
SINTER_SHAPE_WITHOUT_BRACES(empty)
SINTER_SHAPE_WITHOUT_BRACES(zeros)
SINTER_SHAPE_WITHOUT_BRACES(ones)
template <int = 0, std::integral A, std::integral B, class... More, class Problem = extents_that_are_not_in_braces,
          class Fix = write_them_in_braces>
tensor<float, 1, cpu> full(A, B, More...) = delete;

namespace detail {

template <element T, device D>
tensor<T, 1, D> arange_of_integers(std::int64_t first, std::int64_t last, std::int64_t step) {
  const bool up = step > 0;
  // unsigned, where differences do not overflow
  const auto from = static_cast<std::uint64_t>(first), to = static_cast<std::uint64_t>(last),
             stride = static_cast<std::uint64_t>(step);
  const std::uint64_t n =
      (up ? first >= last : first <= last) ? 0 : ((up ? to - from : from - to) - 1) / (up ? stride : 0 - stride) + 1;
  const auto at = [=](std::uint64_t i) { return static_cast<std::int64_t>(from + i * stride); };
  if (n > 0) {
    check_fits<T>("arange", first);
    check_fits<T>("arange", at(n - 1));
  }
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
  return generate<T, D>(extents<1>{{static_cast<index_t>(n < limit ? n : limit)}},
                        [=](index_t i) { return static_cast<T>(at(static_cast<std::uint64_t>(i))); });
}

template <element T, device D>
tensor<T, 1, D> arange_of_reals(double first, double last, double step) {
  const double span = last - first;
  const double length = std::fmax(0, std::isfinite(span) ? span / step : last / step - first / step);
  if (!(length < 9e15)) refuse<shape_error>({"arange: ", length, " elements are more than can be addressed"});
  const auto n = static_cast<index_t>(std::ceil(length));
  const auto at = [=](index_t i) { return first + static_cast<double>(i) * step; };
  if (n > 0) {
    check_fits<T>("arange", first);
    check_fits<T>("arange", at(n - 1));
  }
  return generate<T, D>(extents<1>{{n}}, [=](index_t i) { return static_cast<T>(at(i)); });
}

}  // namespace detail

/// begin, begin + step, ... before end (after, when step is negative). Length ceil((end - begin) / step), of the
/// numbers as they are given: exact for integers, in double for others; only the elements are rounded to T. Errors:
/// value_error for a step of 0, what is not finite, fractions where T is an integer, and elements that do not fit T.
template <element T, device D = cpu>
  requires(!std::is_same_v<T, bool>)
tensor<T, 1, D> arange(detail::arange_number begin, detail::arange_number end, detail::arange_number step = 1) {
  if (step.real() == 0 || !std::isfinite(begin.real()) || !std::isfinite(end.real()) || !std::isfinite(step.real()))
    throw value_error("arange: begin, end and step must be finite and step not 0");
  if (begin.is_whole() && end.is_whole() && step.is_whole())
    return detail::arange_of_integers<T, D>(begin.whole(), end.whole(), step.whole());
  if constexpr (std::is_integral_v<T>) {
    const auto odd = !begin.is_whole() ? begin : !end.is_whole() ? end : step;
    detail::refuse<value_error>({"arange: ", odd.real(), " does not fit elements of type ", element_name<T>()});
  } else {
    return detail::arange_of_reals<T, D>(begin.real(), end.real(), step.real());
  }
}
/// 0, 1, ... before end.
template <element T, device D = cpu>
  requires(!std::is_same_v<T, bool>)
tensor<T, 1, D> arange(detail::arange_number end) {
  return arange<T, D>(0, end);
}
/// Where no element type is named: int64 of integers, else float.
///
///     tensor positions = arange(10);
template <int = 0, class... Number>
  requires(sizeof...(Number) >= 1 && sizeof...(Number) <= 3 && (std::is_arithmetic_v<Number> && ...))
auto arange(Number... numbers) {
  return arange<std::conditional_t<(std::is_integral_v<Number> && ...), std::int64_t, float>, cpu>(numbers...);
}

namespace detail {

/// Number i of n evenly spaced ones from begin to end; of one it is `begin`. Those nearer to the end are counted from
/// there, so that the last one is exact.
SINTER_SHARED double point_between(double begin, double end, index_t n, index_t i);
SINTER_SHARED void check_points_between(const char* op, double begin, double end, index_t n);
#if SINTER_DEFINES
SINTER_SHARED double point_between(double begin, double end, index_t n, index_t i) {
  const double steps = static_cast<double>(n > 1 ? n - 1 : 1), step = end / steps - begin / steps;
  return i < (n + 1) / 2 ? begin + step * static_cast<double>(i) : end - step * static_cast<double>(n - 1 - i);
}
SINTER_SHARED void check_points_between(const char* op, double begin, double end, index_t n) {
  if (n < 0) refuse<value_error>({op, ": ", n, " numbers; there must be 0 or more"});
  if (!std::isfinite(begin) || !std::isfinite(end))
    refuse<value_error>({op, ": from ", begin, " to ", end, "; both must be finite"});
}
#endif

}  // namespace detail

/// n numbers from begin to end, evenly spaced, both ends among them: computed in double, then converted to T, towards 0
/// where that is an integer. Errors: value_error for an end that is not finite, or fewer than no numbers.
///
///     tensor x = linspace(0, 1, 5);  // 0, 0.25, 0.5, 0.75, 1
template <element T = float, device D = cpu>
  requires(!std::is_same_v<T, bool>)
tensor<T, 1, D> linspace(double begin, double end, detail::whole n) {
  const index_t count = n;
  detail::check_points_between("linspace", begin, end, count);
  if (count > 0) {
    detail::check_fits<T>("linspace", std::trunc(begin));
    detail::check_fits<T>("linspace", std::trunc(count > 1 ? end : begin));
  }
  return detail::generate<T, D>(extents<1>{{count}},
                                [=](index_t i) { return static_cast<T>(detail::point_between(begin, end, count, i)); });
}

/// `base` to the power of n numbers from begin to end, evenly spaced. Errors: as linspace.
///
///     tensor rates = logspace(-4, -1, 4);  // 0.0001, 0.001, 0.01, 0.1
template <element T = float, device D = cpu>
  requires(!std::is_same_v<T, bool>)
tensor<T, 1, D> logspace(double begin, double end, detail::whole n, double base = 10) {
  const index_t count = n;
  detail::check_points_between("logspace", begin, end, count);
  const auto at = [=](index_t i) { return std::pow(base, detail::point_between(begin, end, count, i)); };
  if constexpr (std::is_integral_v<T>)
    for (index_t i = 0; i < count; ++i) detail::check_fits<T>("logspace", std::trunc(at(i)));
  return detail::generate<T, D>(extents<1>{{count}}, [=](index_t i) { return static_cast<T>(at(i)); });
}

/// The n x m matrix with ones where row and column are equal, zeros elsewhere; the n x n identity.
///
///     tensor i = eye<float>(3);
template <element T = float, device D = cpu>
tensor<T, 2, D> eye(detail::whole n, detail::whole m) {
  const index_t columns = m;
  return detail::generate<T, D>(extents<2>{{n, m}}, [=](index_t i) { return T(i / columns == i % columns ? 1 : 0); });
}
template <element T = float, device D = cpu>
tensor<T, 2, D> eye(detail::whole n) {
  return eye<T, D>(n, n);
}

namespace detail {

template <class V>
using value_of = std::remove_cvref_t<decltype(*std::data(std::declval<const V&>()))>;
/// Elements one after another in the host's memory.
template <class V>
concept host_values = requires(const V& v) {
  std::size(v);
  requires element<value_of<V>>;
};

}  // namespace detail

/// A copy of host values, row-major; their number must be that of the shape.
///
///     tensor x = from_data<float>(values, {10, 3});
template <element T, device D = cpu, int R>
tensor<T, R, D> from_data(std::span<const std::type_identity_t<T>> values, const extents<R>& shape) {
  const index_t n = detail::checked_numel("from_data", shape.data(), R, sizeof(T));
  if (n != static_cast<index_t>(values.size()))
    detail::refuse<shape_error>({"from_data: ", values.size(), " values for shape ", shape, ", which holds ", n});
  return detail::upload<T, D>(values.data(), shape);
}
template <element T, device D = cpu, std::size_t R>
tensor<T, int{R}, D> from_data(std::span<const std::type_identity_t<T>> values, const index_t (&shape)[R]) {
  return from_data<T, D>(values, detail::to_extents(shape));
}

/// The same of a vector, array or span, whose element type the tensor has.
///
///     tensor x = from_data(values, {10, 3});
template <device D = cpu, detail::host_values V, std::size_t R>
tensor<detail::value_of<V>, int{R}, D> from_data(const V& values, const index_t (&shape)[R]) {
  return from_data<detail::value_of<V>, D>(values, detail::to_extents(shape));
}
template <device D = cpu, detail::host_values V, int R>
tensor<detail::value_of<V>, R, D> from_data(const V& values, const extents<R>& shape) {
  return from_data<detail::value_of<V>, D>(values, shape);
}

template <class Given, class Asked>
struct host_values_of_another_element_type;
struct write_from_data_without_the_type_and_cast_the_tensor;
template <element T, device D = cpu, detail::host_values V, std::size_t R,
          class Problem = host_values_of_another_element_type<detail::value_of<V>, T>,
          class Fix = write_from_data_without_the_type_and_cast_the_tensor>
  requires(!std::is_same_v<detail::value_of<V>, T>)
void from_data(const V&, const index_t (&)[R]) = delete;
template <element T, device D = cpu, detail::host_values V, int R,
          class Problem = host_values_of_another_element_type<detail::value_of<V>, T>,
          class Fix = write_from_data_without_the_type_and_cast_the_tensor>
  requires(!std::is_same_v<detail::value_of<V>, T>)
void from_data(const V&, const extents<R>&) = delete;

/// A tensor over memory owned by the caller, which must outlive every handle; nothing is copied. On a GPU the memory
/// must be that GPU's own, from cudaMalloc or the like, and work on it that was not put on native_stream<D>() has to be
/// over. Errors: device_error for a null pointer to one element or more, and for memory that is not where D says: of
/// the host, managed, or of another GPU. Host devices take the pointer as it is.
///
///     tensor rows = wrap(values.data(), {10, 3});
///     tensor there = wrap<cuda<0>>(from_cuda_malloc, {10, 3});
template <device D = cpu, element T, int R>
tensor<T, R, D> wrap(T* data, const extents<R>& shape) {
  static_cast<void>(sizeof(detail::runs_in_this_file<D>));
  const index_t n = detail::checked_numel("wrap", shape.data(), R, sizeof(T));
  if (data == nullptr && n > 0)
    detail::refuse<device_error>({"wrap: null pointer for shape ", shape, " on ", device_name<D>()});
  if constexpr (is_cuda_v<D>) {
    if (n > 0) detail::device_runtime<D>::check_place("wrap", data, static_cast<std::size_t>(n) * sizeof(T));
  }
  return detail::access::make<T, R, D>(detail::borrow_storage(data, static_cast<std::size_t>(n) * sizeof(T)), data,
                                       shape, detail::row_major_strides(shape));
}
template <device D = cpu, element T, std::size_t R>
tensor<T, int{R}, D> wrap(T* data, const index_t (&shape)[R]) {
  return wrap<D>(data, detail::to_extents(shape));
}

// New tensors with the shape, element type and device of another.
template <expression E>
auto empty_like(const E& e) {
  return empty<element_of<E>, device_of<E>>(detail::shape_like("empty_like", e));
}
template <expression E>
auto zeros_like(const E& e) {
  return zeros<element_of<E>, device_of<E>>(detail::shape_like("zeros_like", e));
}
template <expression E>
auto ones_like(const E& e) {
  return ones<element_of<E>, device_of<E>>(detail::shape_like("ones_like", e));
}
template <expression E>
auto full_like(const E& e, detail::number<element_of<E>> value) {
  return full<element_of<E>, device_of<E>>(detail::shape_like("full_like", e), value);
}

namespace detail {

/// Dense memory on one device -> dense memory on another (or the same).
template <device From, device To>
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  const bool measured = !std::is_same_v<From, To> && usage_is_measured();
  const usage_clock clock(measured ? &copies_between<From, To>() : nullptr, bytes);
  if constexpr (is_cpu_v<From> && is_cpu_v<To>) device_runtime<To>::copy_within(to, from, bytes);
  else if constexpr (is_cpu_v<From>) device_runtime<To>::copy_from_host(to, from, bytes);
  else if constexpr (is_cpu_v<To>) device_runtime<From>::copy_to_host(to, from, bytes);
  else device_runtime<To>::template copy_from_device<From>(to, from, bytes);
}

}  // namespace detail

template <class T, auto Shape, device D>
template <device To>
tensor<T, Shape, To> tensor<T, Shape, D>::to() const {
  if constexpr (std::is_same_v<To, D>) {
    return *this;
  } else {
    require_value("to");
    if constexpr (is_cuda_v<D> || is_cuda_v<To>)
      detail::refuse_capture("to<" + device_name<To>() + ">()",
                             "a graph holds the work of one device; copy inputs before replay() and results after it");
    const tensor dense = is_dense() ? *this : clone();
    const auto copy = tensor<T, Shape, To>::uninitialized(shape_, dense.strides_);
    detail::copy_bytes<D, To>(detail::access::data(copy), dense.data_, static_cast<std::size_t>(numel()) * sizeof(T));
    return copy;
  }
}

/// Copies src into the storage of dst; same shape and element type, any devices.
template <class T, auto Shape, device To, device From>
void copy(const tensor<T, Shape, From>& src, const tensor<T, Shape, To>& dst) {
  if (!src.defined()) detail::refuse_undefined("copy, source");
  if (!dst.defined()) detail::refuse_undefined("copy, destination");
  if (!(src.shape() == dst.shape()))
    detail::refuse<shape_error>({"copy: source of shape ", src.shape(), " into destination of shape ", dst.shape()});
  auto target = dst;
  if constexpr (std::is_same_v<From, To>) std::move(target) = src;
  else std::move(target) = src.template to<To>();
}

}  // namespace sinter

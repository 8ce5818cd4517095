// sinter/random/create.hpp: tensors of random numbers: rand, uniform, randn, normal, randint, bernoulli, randperm.
#pragma once

#include <cmath>

#include "sinter/core/create.hpp"
#include "sinter/random/distribution.hpp"

namespace sinter {

namespace detail {

SINTER_SHARED void check_finite(const char* op, double a, double b);

#if SINTER_DEFINES

SINTER_SHARED void check_finite(const char* op, double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b))
    refuse<value_error>({op, ": the parameters must be finite, not ", a, " and ", b});
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Uniform in [low, high) (high may be met by rounding). Shape is a list or extents. The same bits on every device for
/// float, equal to the rounding of one sum for double.
template <floating_element T = float, device D = cpu, int R>
tensor<T, R, D> uniform(generator& gen, std::type_identity_t<T> low, std::type_identity_t<T> high,
                        const extents<R>& shape) {
  detail::check_finite("uniform", static_cast<double>(low), static_cast<double>(high));
  if (!(low <= high)) detail::refuse<value_error>({"uniform: low is above high"});
  if (!std::isfinite(static_cast<double>(T(compute_type<T>(high) - low))))
    detail::refuse<value_error>(
        {"uniform: the width of [", static_cast<double>(low), ", ", static_cast<double>(high), ") is not finite"});
  return detail::draw<D>(gen, detail::uniform_numbers<T>{low, compute_type<T>(high) - low}, shape);
}
template <floating_element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> uniform(generator& gen, std::type_identity_t<T> low, std::type_identity_t<T> high,
                             const index_t (&shape)[R]) {
  return uniform<T, D>(gen, low, high, detail::to_extents(shape));
}

/// Uniform in [0, 1): multiples of 2^-24 (float), 2^-53 (double), 2^-11 (half) or 2^-8 (bfloat16), the same bits on
/// every device.
///
///     tensor x = rand<float>(gen, {2, 3});
template <floating_element T = float, device D = cpu, int R>
tensor<T, R, D> rand(generator& gen, const extents<R>& shape) {
  return detail::draw<D>(gen, detail::uniform_numbers<T>{}, shape);
}
template <floating_element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> rand(generator& gen, const index_t (&shape)[R]) {
  return rand<T, D>(gen, detail::to_extents(shape));
}

/// Normal with the given mean and standard deviation. The random bits are the same on every device, the numbers equal
/// to the rounding of its log and cos.
template <floating_element T = float, device D = cpu, int R>
tensor<T, R, D> normal(generator& gen, std::type_identity_t<T> mean, std::type_identity_t<T> deviation,
                       const extents<R>& shape) {
  detail::check_finite("normal", static_cast<double>(mean), static_cast<double>(deviation));
  if (!(deviation >= 0)) detail::refuse<value_error>({"normal: the standard deviation is negative"});
  return detail::draw<D>(gen, detail::normal_numbers<T>{mean, deviation}, shape);
}
template <floating_element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> normal(generator& gen, std::type_identity_t<T> mean, std::type_identity_t<T> deviation,
                            const index_t (&shape)[R]) {
  return normal<T, D>(gen, mean, deviation, detail::to_extents(shape));
}

/// Normal with mean 0 and variance 1; always finite.
template <floating_element T = float, device D = cpu, int R>
tensor<T, R, D> randn(generator& gen, const extents<R>& shape) {
  return detail::draw<D>(gen, detail::normal_numbers<T>{}, shape);
}
template <floating_element T = float, device D = cpu, std::size_t R>
tensor<T, int{R}, D> randn(generator& gen, const index_t (&shape)[R]) {
  return randn<T, D>(gen, detail::to_extents(shape));
}

/// Integers in [low, high). Errors: value_error where there are none, or some do not fit T.
///
///     tensor bytes = randint<std::uint8_t>(gen, 0, 256, {1000});
template <integer_element T = std::int64_t, device D = cpu, int R>
tensor<T, R, D> randint(generator& gen, detail::number<std::int64_t> low, detail::number<std::int64_t> high,
                        const extents<R>& shape) {
  const std::int64_t first = low, end = high;
  if (first >= end) detail::refuse<value_error>({"randint: no integer is in [", first, ", ", end, ")"});
  detail::check_fits<T>("randint", first);
  detail::check_fits<T>("randint", end - 1);
  const auto width = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(first);
  return detail::draw<D>(gen, detail::integer_numbers<T>{static_cast<T>(first), width}, shape);
}
template <integer_element T = std::int64_t, device D = cpu, std::size_t R>
tensor<T, int{R}, D> randint(generator& gen, detail::number<std::int64_t> low, detail::number<std::int64_t> high,
                             const index_t (&shape)[R]) {
  return randint<T, D>(gen, low, high, detail::to_extents(shape));
}

/// The same in [0, high).
template <integer_element T = std::int64_t, device D = cpu, std::size_t R>
tensor<T, int{R}, D> randint(generator& gen, detail::number<std::int64_t> high, const index_t (&shape)[R]) {
  return randint<T, D>(gen, 0, high, detail::to_extents(shape));
}

/// 1 (true) with probability p, otherwise 0. p counts in steps of 2^-32.
template <element T = bool, device D = cpu, int R>
tensor<T, R, D> bernoulli(generator& gen, double p, const extents<R>& shape) {
  return detail::draw<D>(gen, detail::bernoulli_numbers<T>{detail::bernoulli_limit("bernoulli", p), T(1), T(0)}, shape);
}
template <element T = bool, device D = cpu, std::size_t R>
tensor<T, int{R}, D> bernoulli(generator& gen, double p, const index_t (&shape)[R]) {
  return bernoulli<T, D>(gen, p, detail::to_extents(shape));
}

/// A random order of 0, ..., n - 1 (Fisher and Yates).
template <integer_element T = std::int64_t, device D = cpu>
tensor<T, 1, D> randperm(generator& gen, index_t n) {
  if (n < 0) detail::refuse<value_error>({"randperm: n is negative: ", n});
  if (n > 0 && static_cast<std::uint64_t>(n - 1) > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
    detail::refuse<value_error>({"randperm: ", n, " numbers do not fit ", element_name<T>()});
  const auto host = tensor<T, 1, cpu>::uninitialized(extents<1>{{n}});
  T* const p = detail::access::data(host);
  const random_key key = detail::draw_key(gen);
  // The first i are in random order; i goes to a random place among them. Where, is found for many numbers at once, so
  // that what lies there is on its way to the cache.
  constexpr index_t together = 64;
  std::uint32_t w[std::size_t{2 * together}];
  index_t place[std::size_t{together}];
  for (index_t first = 0; first < n; first += together) {
    const index_t count = n - first < together ? n - first : together;
    detail::random_words<2>(key, first, w);
    for (index_t k = 0; k < count; ++k) {
      place[k] = static_cast<index_t>(detail::multiply_high(std::uint64_t{w[2 * k + 1]} << 32 | w[2 * k],
                                                            static_cast<std::uint64_t>(first + k + 1)));
      __builtin_prefetch(p + place[k], 1);
    }
    for (index_t k = 0; k < count; ++k) {
      p[first + k] = p[place[k]];
      p[place[k]] = static_cast<T>(first + k);
    }
  }
  return host.template to<D>();
}

/// Like rand and randn, with the shape, element type and device of another tensor.
template <expression E>
auto rand_like(generator& gen, const E& e) {
  return rand<element_of<E>, device_of<E>>(gen, detail::shape_like("rand_like", e));
}
template <expression E>
auto randn_like(generator& gen, const E& e) {
  return randn<element_of<E>, device_of<E>>(gen, detail::shape_like("randn_like", e));
}

// Without a generator, or with it behind the shape.
struct random_numbers_without_a_generator_in_front;
struct write_a_generator_as_first_argument;
#define SINTER_WITHOUT_GENERATOR(name)                                    \
  template <class T = float, class D = cpu, std::size_t R, class... More, \
            class Problem = random_numbers_without_a_generator_in_front,  \
            class Fix = write_a_generator_as_first_argument>              \
  tensor<float, int{R}, cpu> name(const index_t(&)[R], More&&...) = delete;
#define SINTER_WITHOUT_GENERATOR_AND_BRACES(name)                                            \
  template <std::integral... I, class Problem = random_numbers_without_a_generator_in_front, \
            class Fix = write_a_generator_as_first_argument>                                 \
    requires(sizeof...(I) > 0)                                                               \
  void name(I...) = delete;
SINTER_WITHOUT_GENERATOR_AND_BRACES(rand)
SINTER_WITHOUT_GENERATOR_AND_BRACES(randn)
#undef SINTER_WITHOUT_GENERATOR_AND_BRACES
template <std::integral L, std::integral H, std::size_t R, class Problem = random_numbers_without_a_generator_in_front,
          class Fix = write_a_generator_as_first_argument>
void randint(L, H, const index_t (&)[R]) = delete;
template <expression E, class Problem = random_numbers_without_a_generator_in_front,
          class Fix = write_a_generator_as_first_argument>
void rand_like(const E&) = delete;
template <expression E, class Problem = random_numbers_without_a_generator_in_front,
          class Fix = write_a_generator_as_first_argument>
void randn_like(const E&) = delete;
SINTER_SHAPE_WITHOUT_BRACES(rand, generator&)
SINTER_SHAPE_WITHOUT_BRACES(randn, generator&)
SINTER_WITHOUT_GENERATOR(rand)
SINTER_WITHOUT_GENERATOR(randn)
#undef SINTER_WITHOUT_GENERATOR
template <class T = std::int64_t, class D = cpu, class Problem = random_numbers_without_a_generator_in_front,
          class Fix = write_a_generator_as_first_argument>
tensor<std::int64_t, 1, cpu> randperm(detail::whole) = delete;

}  // namespace sinter

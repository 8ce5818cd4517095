// sinter/random/distribution.hpp: from random words to numbers, and the kernel that writes them.
#pragma once

#include "sinter/core/capture.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/random/draw_log.hpp"

namespace sinter {
namespace detail {

/// One value per lane -> V, a vector or (one lane) a scalar.
template <class V, class T, std::size_t N>
SINTER_WORD V from_lanes(const T (&lane)[N]) {
  if constexpr (N == 1) return lane[0];
  else return V::load(lane);
}

/// [0, 1): as many top bits of a word as T has digits, 24 for float, over 2 to their number; 53 bits of two for double.
template <class T>
struct uniform_numbers {
  using value_type = T;
  using C = compute_type<T>;
  static constexpr int words = sizeof(C) / 4;
  static constexpr int digits = std::numeric_limits<T>::digits;
  C low = 0, width = 1;

  SINTER_WORD static C unit(const std::uint32_t* w) {
    if constexpr (words == 1)
      return static_cast<C>(static_cast<std::int32_t>(w[0] >> (32 - digits))) * (C(1) / C(std::int32_t{1} << digits));
    else return static_cast<C>(static_cast<std::int64_t>((std::uint64_t{w[1]} << 32 | w[0]) >> 11)) * C(0x1p-53);
  }
  template <class V, int N>
  SINTER_WORD V make(const std::uint32_t* w) const {
    C lane[std::size_t{N}];
    for (int i = 0; i < N; ++i) lane[i] = unit(w + i * words);
    if (low == 0 && width == 1) return from_lanes<V>(lane);
    // The product of two floats is exact in double: the same bits come out whether or not a device fuses it with the
    // sum.
    for (int i = 0; i < N; ++i)
      lane[i] = static_cast<T>(static_cast<double>(lane[i]) * static_cast<double>(width) + static_cast<double>(low));
    return from_lanes<V>(lane);
  }
};

/// cos(pi x). A GPU has it, without the reduction of large angles that cos makes room for in memory.
template <class V>
SINTER_WORD V cos_of_half_turns(V x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<V, float>) return ::cospif(x);
  else if constexpr (std::is_same_v<V, double>) return ::cospi(x);
#endif
  return math::cos(x * math::constant<V>(3.14159265358979323846));
}

/// Box and Muller's sqrt(-2 log u) cos(2 pi v). u is an odd multiple of 2^-32 (2^-54) rounded, never 0: always finite.
template <class T>
struct normal_numbers {
  using value_type = T;
  using C = compute_type<T>;
  static constexpr int words = sizeof(C) / 2;
  C mean = 0, deviation = 1;

  template <class V, int N>
  SINTER_WORD V make(const std::uint32_t* w) const {
    C u[std::size_t{N}], v[std::size_t{N}];
    for (int i = 0; i < N; ++i) {
      const std::uint32_t* x = w + i * words;
      if constexpr (words == 2) {
        u[i] = static_cast<C>(static_cast<std::int32_t>(x[0] >> 1)) * C(0x1p-31) + C(0x1p-32);
        v[i] = static_cast<C>(static_cast<std::int32_t>(x[1] >> 1)) * C(0x1p-30);
      } else {
        u[i] = uniform_numbers<C>::unit(x) + C(0x1p-54);
        v[i] = uniform_numbers<C>::unit(x + 2) * C(2);
      }
    }
    const V radius = math::sqrt(math::constant<V>(-2) * math::log(from_lanes<V>(u)));
    return radius * cos_of_half_turns<V>(from_lanes<V>(v)) * math::constant<V>(deviation) + math::constant<V>(mean);
  }
};

/// low, ..., low + width - 1: the high half of 64 random bits times width; no value is off its share by more than
/// width / 2^64. width 0 stands for 2^64.
template <class T>
struct integer_numbers {
  using value_type = T;
  static constexpr int words = 2;
  T low;
  std::uint64_t width;

  template <class V, int N>
  SINTER_WORD V make(const std::uint32_t* w) const {
    T lane[std::size_t{N}];
    for (int i = 0; i < N; ++i) {
      const std::uint64_t bits = std::uint64_t{w[2 * i + 1]} << 32 | w[2 * i];
      const std::uint64_t step = width == 0 ? bits : multiply_high(bits, width);
      lane[i] = static_cast<T>(static_cast<std::uint64_t>(low) + step);
    }
    return from_lanes<V>(lane);
  }
};

/// `yes` with probability limit / 2^32, otherwise `no`.
template <class T>
struct bernoulli_numbers {
  using value_type = T;
  static constexpr int words = 1;
  std::uint64_t limit;
  compute_type<T> yes, no;

  template <class V, int N>
  SINTER_WORD V make(const std::uint32_t* w) const {
    compute_type<T> lane[std::size_t{N}];
    for (int i = 0; i < N; ++i) lane[i] = w[i] < limit ? yes : no;
    return from_lanes<V>(lane);
  }
};

SINTER_SHARED std::uint64_t bernoulli_limit(const char* op, double p);

namespace kernel {

/// The numbers of a draw, in a plan; see lane_machine in cuda/map.hpp for machines that draw for neighbours together.
template <class Numbers>
struct drawn {
  static constexpr int words = Numbers::words;
  Numbers numbers;
  random_key key;

  /// The words of neighbouring elements.
  template <std::size_t N>
  SINTER_WORD void draw(index_t first, std::uint32_t (&to)[N]) const {
    random_words<words>(key, first, to);
  }
  /// The numbers of the elements that machine m works on.
  template <class M>
  SINTER_WORD auto values(const M& m) const {
    using V = decltype(m.template literal<typename Numbers::value_type>({}));
    constexpr int n = math::lanes_v<V>;
    if constexpr (requires { m.template words<words>(); }) {
      return numbers.template make<V, n>(m.template words<words>());
    } else {
      std::uint32_t w[std::size_t{n * words}];
      draw(m.index(), w);
      return numbers.template make<V, n>(w);
    }
  }
};

template <class Numbers>
struct random : drawn<Numbers> {
  using value_type = typename Numbers::value_type;
  using leaf_types = type_list<>;
  using sink_types = type_list<>;
  static constexpr int leaves = 0;
  static constexpr int sinks = 0;

  template <int, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope&) const {
    return this->values(m);
  }
};

}  // namespace kernel

/// The whole right side of a statement that writes random numbers.
template <class Numbers, int R, device D>
struct random_expr {
  using value_type = typename Numbers::value_type;
  using device_type = D;
  static constexpr int rank = R;
  static constexpr int order = 0;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  Numbers numbers;
  random_key key;
  extents<R> shape_;
  const extents<R>& shape() const { return shape_; }
};

template <class Numbers, int R, device D>
struct lowering<random_expr<Numbers, R, D>> {
  using node = random_expr<Numbers, R, D>;
  template <bool>
  static kernel::random<Numbers> plan(const node& e) {
    return {{e.numbers, e.key}};
  }
  template <bool>
  static leaf_ref* list(const node&, leaf_ref* to) {
    return to;
  }
};

/// The numbers of the samples that this thread works on: first, first + step, ...; see samples_from.
struct sample_numbers {
  index_t first = 0, step = 1;
  /// Without the first n samples.
  sample_numbers behind(index_t n) const { return {first + n * step, step}; }
};
inline sample_numbers& current_samples() {
  static thread_local sample_numbers numbers;
  return numbers;
}

/// The key of a draw of this shape on D. Errors: device_error while a step is captured, unless D can run it again.
template <device D, int R>
random_key next_key(const char* op, generator& gen, const extents<R>& shape) {
  if constexpr (!is_cuda_v<D>)
    refuse_capture(
        op, "a replay would not draw on the host again; draw before replay(), into a tensor that the step reads");
  random_key key = draw_key(gen);
  if (captured_draws* const draws = capturing_draws()) key.run = draws->run();
  if (const auto [first, step] = current_samples(); first != 0 || step != 1) {
    index_t size = 1;
    for (int d = 1; d < R; ++d) size *= shape[d];
    key.first = first * size;
    key.skipped = (step - 1) * size;
    if (size > 0) key.of_sample = size;
  }
  return key;
}

template <device D, class Numbers, int R>
tensor<typename Numbers::value_type, R, D> draw(generator& gen, const Numbers& numbers, const extents<R>& shape) {
  const auto to = tensor<typename Numbers::value_type, R, D>::uninitialized(shape);
  write(random_expr<Numbers, R, D>{numbers, next_key<D>("random numbers", gen, shape), shape}, to);
  return to;
}

#if SINTER_DEFINES

SINTER_SHARED std::uint64_t bernoulli_limit(const char* op, double p) {
  if (!(p >= 0 && p <= 1)) refuse<value_error>({op, ": the probability must be in [0, 1], not ", p});
  return static_cast<std::uint64_t>(p * 0x1p32);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// While one is alive, draws on this thread are those of samples `first`, `first` + `step`, ... of a batch, by their
/// first axis: parts of a batch, each drawn under its own guard by a copy of the generator, have the numbers of the
/// whole. Rank r of R, with the samples that a distributed_sampler gives it, draws under samples_from(r, R).
///
///     generator copy = gen;
///     const samples_from guard(6);
///     tensor rest = rand<float>(copy, {4, 3});  // rows 6 to 9 of rand<float>(gen, {10, 3})
class [[nodiscard]] samples_from {
 public:
  /// Errors: value_error for a negative number and for a step below 1.
  [[nodiscard]] explicit samples_from(index_t first, index_t step = 1)
      : samples_from(detail::sample_numbers{first, step}) {}
  [[nodiscard]] explicit samples_from(const detail::sample_numbers& numbers);
  ~samples_from() { detail::current_samples() = before_; }
  samples_from(const samples_from&) = delete;
  samples_from& operator=(const samples_from&) = delete;

 private:
  detail::sample_numbers before_;
};

#if SINTER_DEFINES

SINTER_SHARED samples_from::samples_from(const detail::sample_numbers& numbers) : before_(detail::current_samples()) {
  if (numbers.first < 0)
    detail::refuse<value_error>({"samples_from: the number of a sample is not negative, but ", numbers.first});
  if (numbers.step < 1) detail::refuse<value_error>({"samples_from: the step is at least 1, not ", numbers.step});
  detail::current_samples() = numbers;
}

#endif  // SINTER_DEFINES

}  // namespace sinter

// sinter/sequences/positions.hpp: where tokens stand: rotary and sinusoidal positions, and ALiBi.
#pragma once

#include <array>
#include <numbers>
#include <optional>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ops/attention.hpp"
#include "sinter/ops/attention_score.hpp"
#include "sinter/ops/rotary.hpp"

namespace sinter::nn {

/// How Llama 3.1 stretches positions: frequencies of wavelengths over context / low are divided by factor, those under
/// context / high stay, and between the two the one goes over into the other.
struct llama3_scaling {
  double factor = 8, low = 1, high = 4, context = 8192;
};

struct rotary_position_options {
  double base = 10000;                        ///< pair i of n turns by base^(-i / n) per position
  index_t turned = 0;                         ///< elements of a row that turn; 0: all
  bool interleaved = false;                   ///< pairs of neighbours; see rotary_options
  double factor = 1;                          ///< positions are divided by it
  std::optional<llama3_scaling> llama3 = {};  ///< in its place
};

namespace detail {

SINTER_SHARED std::vector<double> rotary_frequencies(index_t size, const rotary_position_options& o);
SINTER_SHARED_COLD void check_positions(const char* what, index_t first, index_t steps, index_t size);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_positions(const char* what, index_t first, index_t steps, index_t size) {
  if (first < 0 || steps < 0 || size < 0 || size % 2 != 0)
    sinter::detail::refuse<value_error>({what, ": ", steps, " positions from ", first, " of ", size,
                                         " elements; none may be negative, and elements come in pairs"});
}

SINTER_SHARED std::vector<double> rotary_frequencies(index_t size, const rotary_position_options& o) {
  const index_t turned = o.turned > 0 ? o.turned : size;
  if (o.turned < 0 || turned > size || turned % 2 != 0 || !(o.base > 0) || !(o.factor > 0))
    sinter::detail::refuse<value_error>({"rotary_positions: ", o.turned < 0 ? o.turned : turned, " of ", size,
                                         " elements turn, with base ", o.base, " and factor ", o.factor,
                                         "; elements turn in pairs, base and factor are positive"});
  if (o.llama3 && !(o.llama3->factor > 0 && o.llama3->high > o.llama3->low && o.llama3->low > 0))
    sinter::detail::refuse<value_error>({"rotary_positions: llama3 scaling with factor ", o.llama3->factor, ", low ",
                                         o.llama3->low, " and high ", o.llama3->high,
                                         "; they are positive, and low is less than high"});
  std::vector<double> all;
  for (index_t i = 0; i < turned / 2; ++i) {
    double f = std::pow(o.base, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
    if (o.llama3) {
      const llama3_scaling& s = *o.llama3;
      const double turns = s.context * f / (2 * std::numbers::pi);  // within the context
      const double kept = std::clamp((turns - s.low) / (s.high - s.low), 0.0, 1.0);
      f *= kept + (1 - kept) / s.factor;
    } else {
      f /= o.factor;
    }
    all.push_back(f);
  }
  return all;
}
#endif  // SINTER_DEFINES

}  // namespace detail

/// The angles of positions [first, first + steps) for heads of `size` elements. Called with x (T,d), (N,T,d) or
/// (N,heads,T,d) it turns x by them; see sinter::rotary. One is made for each pass of a network and serves all of its
/// layers. Published weights of Llama take the default pairs. Errors: value_error for sizes and options that are
/// none; those of rotary.
///
///     const nn::rotary_positions turn(64, 0, tokens.extent(1));
///     auto y = attention(turn(q), turn(k), v, {.causal = true});
template <floating_element T = float, device D = cpu>
class rotary_positions {
 public:
  rotary_positions(index_t size, index_t first, index_t steps, const rotary_position_options& options = {})
      : options_{options.interleaved} {
    detail::check_positions("rotary_positions", first, steps, options.turned != 0 ? 0 : size);
    const auto frequencies = detail::rotary_frequencies(size, options);
    std::vector<T> c, s;
    for (index_t t = first; t < first + steps; ++t)
      for (const double f : frequencies) {
        c.push_back(static_cast<T>(std::cos(static_cast<double>(t) * f)));
        s.push_back(static_cast<T>(std::sin(static_cast<double>(t) * f)));
      }
    const extents<2> shape{{steps, static_cast<index_t>(frequencies.size())}};
    cos_ = from_data<T, D>(c, shape);
    sin_ = from_data<T, D>(s, shape);
  }

  template <expression X>
  auto operator()(X&& x) const {
    return rotary(std::forward<X>(x), cos_, sin_, options_);
  }
  /// (steps, pairs).
  const tensor<T, 2, D>& cos() const { return cos_; }
  const tensor<T, 2, D>& sin() const { return sin_; }

 private:
  tensor<T, 2, D> cos_, sin_;
  rotary_options options_;
};
rotary_positions(index_t, index_t, index_t, const rotary_position_options& = {}) -> rotary_positions<>;

/// Positions [first, first + steps) as rows (steps, features), to be added to tokens: element 2 i of position t is
/// sin(t / 10000^(2 i / features)), element 2 i + 1 its cosine. A. Vaswani et al., NIPS (2017). Errors: value_error for
/// an odd number of features.
///
///     tensor x = tokens + nn::sinusoidal_positions(128, 512);  // (N,128,512)
template <floating_element T = float, device D = cpu>
tensor<T, 2, D> sinusoidal_positions(index_t steps, index_t features, index_t first = 0) {
  detail::check_positions("sinusoidal_positions", first, steps, features);
  const auto frequencies = detail::rotary_frequencies(features, {});
  std::vector<T> all;
  for (index_t t = first; t < first + steps; ++t)
    for (const double f : frequencies) {
      all.push_back(static_cast<T>(std::sin(static_cast<double>(t) * f)));
      all.push_back(static_cast<T>(std::cos(static_cast<double>(t) * f)));
    }
  return from_data<T, D>(all, extents<2>{{steps, features}});
}

/// A score for attention: each head takes its own slope times the distance of query and key off it. The slopes of 2^k
/// heads are 2^(-8 / 2^k) and its powers; other numbers of heads take every other slope of twice as many besides. O.
/// Press et al., ICLR (2022). Errors: value_error unless there are 1 to 128 heads,
/// shape_error for queries of another number.
///
///     auto y = attention(q, k, v, nn::alibi(8), {.causal = true});
struct alibi : ops::plain_score {
  static constexpr index_t most_heads = 128;
  std::array<float, std::size_t{most_heads}> slopes{};
  index_t heads;

  explicit alibi(index_t of_heads) : heads(of_heads) {
    if (heads < 1 || heads > most_heads)
      sinter::detail::refuse<value_error>({"alibi: ", heads, " heads; there may be 1 to ", most_heads});
    index_t whole = 1;
    while (2 * whole <= heads) whole *= 2;
    for (index_t h = 0; h < heads; ++h) {
      const double power = h < whole ? static_cast<double>(h + 1) : static_cast<double>(h - whole) + 0.5;
      slopes[static_cast<std::size_t>(h)] = static_cast<float>(std::exp2(-8 * power / static_cast<double>(whole)));
    }
  }
  /// Called once for each attention.
  void require_fit(const ops::attention_extents& e) const {
    if (e.heads != heads)
      sinter::detail::refuse<shape_error>({"alibi: slopes of ", heads, " heads for queries of ", e.heads});
  }
  template <class V>
  SINTER_WORD V apply(V s, const score_place<V>& at) const {
    return s + math::constant<V>(slopes[static_cast<std::size_t>(at.head)]) * (at.key - at.query);
  }
};

}  // namespace sinter::nn

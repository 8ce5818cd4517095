// sinter/sequences/generate.hpp: what a network writes, token by token.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sinter/core/tensor.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/random/create.hpp"

namespace sinter::nn {

/// How the next token is chosen. All but `max_tokens` and `stop` change the distribution, in this order: penalty,
/// temperature, top_k, top_p.
struct generate_options {
  index_t max_tokens = 100;
  double temperature = 1;  ///< logits are divided by it; 0: always the likeliest token
  index_t top_k = 0;       ///< only so many of the likeliest tokens; 0: all
  double top_p = 1;  ///< only the likeliest tokens that have this probability together. A. Holtzman et al., ICLR (2020)
  double repetition_penalty = 1;  ///< makes tokens less likely that were there before. N. Keskar et al., 2019
  std::vector<std::vector<std::int64_t>> stop = {};  ///< ends where the written tokens end in one of these
};

namespace detail {

SINTER_SHARED_COLD void check_generate(const generate_options& o, std::size_t prompt);
/// Errors: shape_error unless these are scores of one place, value_error where there are none.
SINTER_SHARED_COLD void check_scores(const index_t* shape, int rank);
/// The next token after `before`, from its logits, which it overwrites; `u` is uniform in [0, 1).
SINTER_SHARED std::int64_t choose_token(std::vector<float>& logits, std::span<const std::int64_t> before,
                                        const generate_options& o, double u);
SINTER_SHARED bool ends_in_any(std::span<const std::int64_t> written, const generate_options& o);

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_generate(const generate_options& o, std::size_t prompt) {
  using sinter::detail::refuse;
  if (prompt == 0) refuse<value_error>({"generate: the prompt is empty; there is nothing to go on from"});
  if (o.max_tokens < 0) refuse<value_error>({"generate: max_tokens is ", o.max_tokens});
  if (!(o.temperature >= 0) || std::isinf(o.temperature))
    refuse<value_error>({"generate: the temperature must be finite and at least 0, not ", o.temperature});
  if (o.top_k < 0) refuse<value_error>({"generate: top_k is ", o.top_k, "; 0 stands for all tokens"});
  if (!(o.top_p > 0 && o.top_p <= 1)) refuse<value_error>({"generate: top_p must be in (0, 1], not ", o.top_p});
  if (!(o.repetition_penalty > 0) || o.repetition_penalty > std::numeric_limits<float>::max())
    refuse<value_error>(
        {"generate: the penalty of repetitions must be above 0 and a finite float, not ", o.repetition_penalty});
  for (const auto& end : o.stop)
    if (end.empty()) refuse<value_error>({"generate: a stop sequence is empty"});
}
SINTER_SHARED_COLD void check_scores(const index_t* shape, int rank) {
  bool fits = rank > 0;
  for (int d = 0; d + 1 < rank; ++d) fits = fits && shape[d] == 1;
  if (!fits)
    sinter::detail::refuse<shape_error>(
        {"generate: the scores have shape ", sinter::detail::shape_piece{shape, rank},
         "; they must be those of what follows the last token alone, such as (tokens,) or (1,tokens)"});
  if (shape[rank - 1] == 0) sinter::detail::refuse<value_error>({"generate: there are no scores"});
}

SINTER_SHARED std::int64_t choose_token(std::vector<float>& logits, std::span<const std::int64_t> before,
                                        const generate_options& o, double u) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]))
      sinter::detail::refuse<value_error>(
          {"generate: the logit of token ", static_cast<index_t>(i), " is not a number"});
  if (o.repetition_penalty != 1) {
    std::vector<std::int64_t> seen(before.begin(), before.end());
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    const float penalty = static_cast<float>(o.repetition_penalty);
    for (const std::int64_t id : seen)
      if (id >= 0 && id < static_cast<std::int64_t>(logits.size())) {
        float& x = logits[static_cast<std::size_t>(id)];
        x = x > 0 ? x / penalty : x * penalty;
      }
  }
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (*likeliest == -std::numeric_limits<float>::infinity())
    sinter::detail::refuse<value_error>({"generate: no token can follow, the scores of all are -infinity"});
  if (o.temperature == 0) return likeliest - logits.begin();
  // The order of the tokens matters only where some of them are left out.
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (o.top_k > 0 || o.top_p < 1)
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const float of_a = logits[static_cast<std::size_t>(a)], of_b = logits[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
  if (o.top_k > 0 && o.top_k < static_cast<index_t>(order.size())) order.resize(static_cast<std::size_t>(o.top_k));
  const double most = *likeliest;
  std::vector<double> weights;
  double total = 0;
  for (const std::int64_t id : order) {
    const double x = logits[static_cast<std::size_t>(id)];
    weights.push_back(x == most ? 1 : std::exp((x - most) / o.temperature));
    total += weights.back();
  }
  if (o.top_p < 1) {
    double sum = 0;
    std::size_t n = 0;
    while (n < weights.size() && sum < o.top_p * total) sum += weights[n++];
    weights.resize(n);
    total = sum;
  }
  double rest = u * total;
  std::size_t at = 0;
  while (at + 1 < weights.size() && rest >= weights[at]) rest -= weights[at++];
  while (at > 0 && weights[at] == 0) --at;  // rounding led past the last token that can be drawn
  return order[at];
}

SINTER_SHARED bool ends_in_any(std::span<const std::int64_t> written, const generate_options& o) {
  for (const auto& end : o.stop)
    if (!end.empty() && end.size() <= written.size() && std::equal(end.rbegin(), end.rend(), written.rbegin()))
      return true;
  return false;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// The tokens that follow a prompt, one by one, without the prompt. `next(ids)` reads tokens, first the whole prompt,
/// then each that was chosen, and gives the scores of what follows the last of them, (tokens,) or (1,tokens): of scores
/// (1,T,tokens) select the last place. `on_token(id)` is called with each; it may return false to end. A penalty of
/// repetitions counts the prompt, a stop sequence does not, and the tokens that complete one are part of the result.
/// The same state of the generator gives the same tokens. Errors: value_error for options out of range, and for scores
/// that are NaN or all -infinity; shape_error for scores of several places; what next throws, as of a full cache.
///
///     const auto text = nn::generate([&](auto ids) { return reader.next(ids, cache); }, prompt, {.top_k = 40}, gen);
template <class Next, class OnToken>
std::vector<std::int64_t> generate(Next&& next, std::span<const std::int64_t> prompt, const generate_options& options,
                                   generator& gen, OnToken&& on_token) {
  detail::check_generate(options, prompt.size());
  std::vector<std::int64_t> all(prompt.begin(), prompt.end());
  std::size_t read = 0;
  for (index_t i = 0; i < options.max_tokens; ++i) {
    const auto given = sinter::eval(next(std::span<const std::int64_t>(all).subspan(read)));
    detail::check_scores(given.shape().data(), rank_of<decltype(given)>);
    const auto logits = sinter::eval(cast<float>(given)).template to<cpu>().contiguous();
    read = all.size();
    std::vector<float> scores(logits.data(), logits.data() + logits.numel());
    const double u = options.temperature == 0 ? 0 : rand<double>(gen, {1})(0);
    const std::int64_t id = detail::choose_token(scores, all, options, u);
    all.push_back(id);
    if constexpr (std::is_same_v<decltype(on_token(id)), bool>) {
      if (!on_token(id)) break;
    } else {
      on_token(id);
    }
    if (detail::ends_in_any(std::span<const std::int64_t>(all).subspan(prompt.size()), options)) break;
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}
template <class Next>
std::vector<std::int64_t> generate(Next&& next, std::span<const std::int64_t> prompt, const generate_options& options,
                                   generator& gen) {
  return generate(std::forward<Next>(next), prompt, options, gen, [](std::int64_t) {});
}
/// The same of a prompt in braces.
template <class Next, class... OnToken>
std::vector<std::int64_t> generate(Next&& next, std::initializer_list<std::int64_t> prompt,
                                   const generate_options& options, generator& gen, OnToken&&... on_token) {
  return generate(std::forward<Next>(next), std::span<const std::int64_t>(prompt.begin(), prompt.size()), options, gen,
                  std::forward<OnToken>(on_token)...);
}

}  // namespace sinter::nn

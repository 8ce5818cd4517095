// sinter/core/reduction.hpp: how many values become one: of the samples of a loss, or of the ranks of a communicator.
#pragma once

namespace sinter {

/// How a loss combines the losses of its samples (`none`, `sum`, `mean`, and kl_div `batchmean`), a communicator the
/// elements of its ranks (`sum`, `max`), and scatter_reduce what it writes to one place (`sum`, `prod`, `mean`, `max`,
/// `min`).
namespace reduction {
struct none_t {};
struct sum_t {};
struct mean_t {};
struct batchmean_t {};
struct max_t {};
struct min_t {};
struct prod_t {};
inline constexpr none_t none{};
inline constexpr sum_t sum{};
inline constexpr mean_t mean{};
inline constexpr batchmean_t batchmean{};
inline constexpr max_t max{};
inline constexpr min_t min{};
inline constexpr prod_t prod{};
}  // namespace reduction

}  // namespace sinter

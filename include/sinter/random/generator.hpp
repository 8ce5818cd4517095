// sinter/random/generator.hpp: the generator a program passes around: a seed and the number of the next draw.
#pragma once

#include <type_traits>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/undo.hpp"
#include "sinter/random/philox.hpp"

namespace sinter {

// Names in messages.
struct generator_that_gets_another_seed;
struct write_gen_equals_generator_of_the_seed;

// Names in messages.
struct draw_as_a_member_of_the_generator;
struct call_the_function_with_the_generator_first;

/// Hands out keys, one per draw (`rand`, `dropout`, ...). A copy continues alike and independently. The numbers of a
/// draw depend on the seed, the number of the draw and the element's index only: not on device or threads.
///
///     generator gen(42);
///     tensor x = randn<float>(gen, {128, 784});
class generator {
 public:
  explicit constexpr generator(std::uint64_t seed = 0, std::uint64_t offset = 0) noexcept : key_{seed, offset} {}
  constexpr generator(const generator&) = default;
  constexpr generator& operator=(const generator&) = default;
  constexpr ~generator() {
    if (!std::is_constant_evaluated() && detail::undo_scope::current() != nullptr) detail::undo_scope::forget(this);
  }

  /// The key of the next draw.
  constexpr random_key next() noexcept {
    const random_key key = key_;
    ++key_.draw;
    return key;
  }

  /// A generator whose draws have nothing to do with this one's; costs this one a draw.
  constexpr generator split() noexcept {
    const philox_block b = philox4x32(next(), ~std::uint64_t{0});
    return generator(std::uint64_t{b.word[1]} << 32 | b.word[0], std::uint64_t{b.word[3]} << 32 | b.word[2]);
  }

  constexpr std::uint64_t seed() const noexcept { return key_.seed; }
  template <class N, class Problem = generator_that_gets_another_seed,
            class Fix = write_gen_equals_generator_of_the_seed>
  void seed(N) = delete;
  template <class N, class Problem = generator_that_gets_another_seed,
            class Fix = write_gen_equals_generator_of_the_seed>
  void manual_seed(N) = delete;
#define SINTER_DRAW(name)                                                                 \
  template <std::size_t N, class... A, class Problem = draw_as_a_member_of_the_generator, \
            class Fix = call_the_function_with_the_generator_first>                       \
  void name(const index_t(&)[N], A...) = delete;                                          \
  template <class... A, class Problem = draw_as_a_member_of_the_generator,                \
            class Fix = call_the_function_with_the_generator_first>                       \
  void name(A...) = delete;
  SINTER_DRAW(randn)
  SINTER_DRAW(rand)
  SINTER_DRAW(randint)
  SINTER_DRAW(uniform)
  SINTER_DRAW(normal)
#undef SINTER_DRAW
  /// How many draws have been made (plus the offset it started from): with seed(), all there is to save.
  constexpr std::uint64_t offset() const noexcept { return key_.draw; }

 private:
  random_key key_;
};

namespace detail {

/// note_before_draw where a scope notes changes.
SINTER_SHARED void note_draw(undo_scope& scope, generator& gen);
/// Before a generator moves on.
inline void note_before_draw(generator& gen) {
  if (undo_scope* const scope = undo_scope::current()) note_draw(*scope, gen);
}

#if SINTER_DEFINES

struct generator_change final : change {
  explicit generator_change(generator& gen) : before(gen) { object = &gen; }
  void undo() noexcept override { *static_cast<generator*>(const_cast<void*>(object)) = before; }
  generator before;
};
SINTER_SHARED void note_draw(undo_scope& scope, generator& gen) {
  if (scope.newest() != nullptr && scope.newest()->object == &gen) return;
  scope.add(make_owned<generator_change>(gen));
}

#endif  // SINTER_DEFINES

}  // namespace detail

}  // namespace sinter

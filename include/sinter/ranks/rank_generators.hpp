// sinter/ranks/rank_generators.hpp: the generators of a model on several ranks, which make the same draws.
#pragma once

#include "sinter/nn/state.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter::nn::detail {

template <class M>
index_t count_generators(M& model) {
  index_t count = 0;
  for_each_generator(model, [&](const member_name&, const generator&) { ++count; });
  return count;
}

/// The generators of all ranks become those of rank 0.
template <class M, class C>
void spread_generators(M& model, C& ranks) {
  const index_t count = count_generators(model);
  if (count == 0) return;
  auto states = tensor<std::int64_t, 1>::uninitialized(extents<1>{{2 * count}});
  std::int64_t* to = states.data();
  for_each_generator(model, [&](const member_name&, const generator& g) {
    *to++ = static_cast<std::int64_t>(g.seed());
    *to++ = static_cast<std::int64_t>(g.offset());
  });
  states = ranks.broadcast(states, 0, "generators of rank 0").get();
  const std::int64_t* from = states.data();
  for_each_generator(model, [&](const member_name&, generator& g) {
    g = generator(static_cast<std::uint64_t>(from[0]), static_cast<std::uint64_t>(from[1]));
    from += 2;
  });
}

/// Each generator has made as many draws as on the rank where it has made most: a rank without samples ran no forward.
template <class M, class C>
void level_generators(M& model, C& ranks) {
  const index_t count = count_generators(model);
  if (count == 0) return;
  auto draws = tensor<std::int64_t, 1>::uninitialized(extents<1>{{count}});
  std::int64_t* to = draws.data();
  for_each_generator(model,
                     [&](const member_name&, const generator& g) { *to++ = static_cast<std::int64_t>(g.offset()); });
  draws = ranks.all_reduce(draws, reduction::max, "draws of generators").get();
  const std::int64_t* from = draws.data();
  for_each_generator(model, [&](const member_name&, generator& g) {
    sinter::detail::note_before_draw(g);
    g = generator(g.seed(), static_cast<std::uint64_t>(*from++));
  });
}

}  // namespace sinter::nn::detail

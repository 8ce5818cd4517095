// sinter/random/bernoulli.hpp: draws of 0 and 1 with probabilities of their own.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

/// 1 with the probability that p has there, otherwise 0, of p's element type, as torch.bernoulli. Runs at once. No
/// derivative.
///
///     tensor kept = bernoulli(gen, sigmoid(scores));
template <expression P>
  requires(floating_element<element_of<P>>)
tensor<element_of<P>, rank_of<P>, device_of<P>> bernoulli(generator& gen, const P& p) {
  const no_grad guard;
  const auto value = detail::eval_to_read(p);
  return cast<element_of<P>>(rand<element_of<P>, device_of<P>>(gen, value.shape()) < value);
}

}  // namespace sinter

// sinter/optim/other_names.hpp: names of torch.optim and of torch.nn.utils that go by another one here.
#pragma once

#include <utility>

#include "sinter/optim/clip.hpp"

namespace sinter {

namespace optim {

// Names in messages.
struct write_optim_adam;
struct write_optim_adamw;
struct write_optim_sgd;
struct write_optim_cosine_lr;
struct write_optim_reduce_on_plateau;

SINTER_CLASS_NAMED_OTHERWISE(Adam, write_optim_adam)
SINTER_CLASS_NAMED_OTHERWISE(AdamW, write_optim_adamw)
SINTER_CLASS_NAMED_OTHERWISE(SGD, write_optim_sgd)
SINTER_CLASS_NAMED_OTHERWISE(cosine_annealing_lr, write_optim_cosine_lr)
SINTER_CLASS_NAMED_OTHERWISE(reduce_lr_on_plateau, write_optim_reduce_on_plateau)

}  // namespace optim

/// optim::clip_grad_norm, by PyTorch's name.
///
///     nn::utils::clip_grad_norm_(model, 1.0);
namespace nn::utils {
template <class M, class... More>
auto clip_grad_norm_(const M& model, More&&... more) {
  return optim::clip_grad_norm(model, std::forward<More>(more)...);
}
}  // namespace nn::utils

}  // namespace sinter

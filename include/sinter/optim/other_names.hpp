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
struct write_optim_rmsprop;
struct write_optim_adagrad;
struct write_optim_one_cycle_lr;
struct write_optim_lr_scheduler_with_a_function_of_base_and_epoch;
struct write_optim_reduce_on_plateau;

struct schedule_in_braces {
  sinter::detail::any_option step_size, gamma, T_max, eta_min, mode, factor, patience, threshold, max_lr, total_steps;
};
#define SINTER_SCHEDULE_NAMED_OTHERWISE(name, fix) \
  SINTER_CLASS_OF_OPTIONS_NAMED_OTHERWISE(name, fix, schedule_in_braces)

SINTER_CLASS_NAMED_OTHERWISE(Adam, write_optim_adam)
SINTER_CLASS_NAMED_OTHERWISE(AdamW, write_optim_adamw)
SINTER_CLASS_NAMED_OTHERWISE(SGD, write_optim_sgd)
SINTER_CLASS_NAMED_OTHERWISE(RMSprop, write_optim_rmsprop)
SINTER_CLASS_NAMED_OTHERWISE(Adagrad, write_optim_adagrad)
SINTER_SCHEDULE_NAMED_OTHERWISE(StepLR, write_optim_lr_scheduler_of_the_optimizer_and_the_schedule)
SINTER_SCHEDULE_NAMED_OTHERWISE(CosineAnnealingLR, write_optim_cosine_lr)
SINTER_SCHEDULE_NAMED_OTHERWISE(ReduceLROnPlateau, write_optim_reduce_on_plateau)
SINTER_SCHEDULE_NAMED_OTHERWISE(OneCycleLR, write_optim_one_cycle_lr)
SINTER_SCHEDULE_NAMED_OTHERWISE(lambda_lr, write_optim_lr_scheduler_with_a_function_of_base_and_epoch)
SINTER_SCHEDULE_NAMED_OTHERWISE(LambdaLR, write_optim_lr_scheduler_with_a_function_of_base_and_epoch)
SINTER_SCHEDULE_NAMED_OTHERWISE(cosine_annealing_lr, write_optim_cosine_lr)
SINTER_SCHEDULE_NAMED_OTHERWISE(reduce_lr_on_plateau, write_optim_reduce_on_plateau)

#undef SINTER_SCHEDULE_NAMED_OTHERWISE

SINTER_FUNCTION_NAMED_OTHERWISE(save, use_a_run_checkpoint_of_sinter_ranks_hpp)
SINTER_FUNCTION_NAMED_OTHERWISE(load, use_a_run_checkpoint_of_sinter_ranks_hpp)

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

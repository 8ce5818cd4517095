// sinter/optim/instances.hpp: optimizers, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/optim/adam.hpp"
#include "sinter/optim/rmsprop.hpp"
#include "sinter/optim/sgd.hpp"

#if SINTER_COMPILED
namespace sinter::optim {

SINTER_INSTANCE class rule_optimizer<detail::sgd_rule>;
SINTER_INSTANCE struct rule_optimizer<detail::sgd_rule>::typed_item<float, cpu>;
SINTER_INSTANCE class rule_optimizer<detail::adam_rule<adam_options, false>>;
SINTER_INSTANCE struct rule_optimizer<detail::adam_rule<adam_options, false>>::typed_item<float, cpu>;
SINTER_INSTANCE class rule_optimizer<detail::adam_rule<adamw_options, true>>;
SINTER_INSTANCE struct rule_optimizer<detail::adam_rule<adamw_options, true>>::typed_item<float, cpu>;

}  // namespace sinter::optim
#endif

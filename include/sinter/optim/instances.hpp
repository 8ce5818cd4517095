// sinter/optim/instances.hpp: optimizers, whose members a program with sinter::compiled holds once.
#pragma once

#include "sinter/optim/adagrad.hpp"
#include "sinter/optim/adam.hpp"
#include "sinter/optim/rmsprop.hpp"
#include "sinter/optim/sgd.hpp"

#if SINTER_COMPILED
namespace sinter::optim {

SINTER_INSTANCE class rule_optimizer<detail::sgd_rule>;
SINTER_INSTANCE void rule_optimizer<detail::sgd_rule>::add_item(const detail::flat_parameter<float, cpu>&, std::string,
                                                                const void*, std::size_t);
SINTER_INSTANCE class rule_optimizer<detail::adagrad_rule>;
SINTER_INSTANCE void rule_optimizer<detail::adagrad_rule>::add_item(const detail::flat_parameter<float, cpu>&,
                                                                    std::string, const void*, std::size_t);
SINTER_INSTANCE class rule_optimizer<detail::adam_rule<adam_options, false>>;
SINTER_INSTANCE void rule_optimizer<detail::adam_rule<adam_options, false>>::add_item(
    const detail::flat_parameter<float, cpu>&, std::string, const void*, std::size_t);
SINTER_INSTANCE class rule_optimizer<detail::adam_rule<adamw_options, true>>;
SINTER_INSTANCE void rule_optimizer<detail::adam_rule<adamw_options, true>>::add_item(
    const detail::flat_parameter<float, cpu>&, std::string, const void*, std::size_t);

}  // namespace sinter::optim
#endif

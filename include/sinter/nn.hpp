// sinter/nn.hpp: modules and losses.
#pragma once

#include "sinter/nn/activation.hpp"
#include "sinter/nn/any_module.hpp"
#include "sinter/nn/buffer.hpp"
#include "sinter/nn/conv.hpp"
#include "sinter/nn/init.hpp"
#include "sinter/nn/linear.hpp"
#include "sinter/nn/loss.hpp"
#include "sinter/nn/member.hpp"
#include "sinter/nn/members.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/nn/module_list.hpp"
#include "sinter/nn/observe.hpp"
#include "sinter/nn/place.hpp"
#include "sinter/nn/sequential.hpp"
#include "sinter/nn/state.hpp"
#include "sinter/nn/summary.hpp"

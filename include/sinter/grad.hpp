// sinter/grad.hpp: variables and their gradients.
#pragma once

#include "sinter/grad/backward_rule.hpp"
#include "sinter/grad/function_mistakes.hpp"
#include "sinter/grad/home.hpp"
#include "sinter/grad/instances.hpp"
#include "sinter/grad/kernel_backward.hpp"
#include "sinter/grad/kernel_graph.hpp"
#include "sinter/grad/listener.hpp"
#include "sinter/grad/narrow.hpp"
#include "sinter/grad/row_gradient.hpp"
#include "sinter/grad/second_order.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/tape.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/grad/walk.hpp"
#include "sinter/grad/with_gradient.hpp"

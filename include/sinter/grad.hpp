// sinter/grad.hpp: variables and their gradients.
#pragma once

// First, because g++ shows with a message the chain of includes to what it is about.
#include "sinter/grad/variable.hpp"

#include "sinter/grad/second_order.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/tape.hpp"

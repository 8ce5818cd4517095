// sinter/random.hpp: counter-based random numbers, identical on every device.
#pragma once

#include "sinter/config.hpp"

#include "sinter/random/bernoulli.hpp"
#include "sinter/random/create.hpp"
#include "sinter/random/distribution.hpp"
#include "sinter/random/dropout.hpp"
#include "sinter/random/generator.hpp"
#include "sinter/random/instances.hpp"
#include "sinter/random/multinomial.hpp"
#include "sinter/random/philox.hpp"
#include "sinter/random/window.hpp"
#if SINTER_WITH_SEQUENCES
#include "sinter/random/attention_dropout.hpp"
#endif

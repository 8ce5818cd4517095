// sinter/ops/sequences.hpp: the ops of sinter/sequences.hpp.
#pragma once

#include "sinter/ops/attention.hpp"
#include "sinter/ops/attention_memory.hpp"
#include "sinter/ops/attention_rule.hpp"
#include "sinter/ops/attention_score.hpp"
#include "sinter/ops/gru.hpp"
#include "sinter/ops/linear_cross_entropy.hpp"
#include "sinter/ops/lstm.hpp"
#include "sinter/ops/recurrent.hpp"
#include "sinter/ops/rnn.hpp"
#include "sinter/ops/rotary.hpp"
#include "sinter/ops/slope.hpp"

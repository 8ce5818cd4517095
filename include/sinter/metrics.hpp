// sinter/metrics.hpp: how good a model is: numbers that are collected batch by batch.
#pragma once

#include "sinter/config.hpp"

#include "sinter/metrics/accuracy.hpp"
#include "sinter/metrics/confusion_matrix.hpp"
#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/other_names.hpp"
#include "sinter/metrics/perplexity.hpp"
#include "sinter/metrics/r2_score.hpp"
#include "sinter/metrics/ranks.hpp"
#include "sinter/metrics/roc_auc.hpp"
#include "sinter/metrics/running_mean.hpp"

// sinter/metrics/other_names.hpp: names of torchmetrics and scikit-learn that go by another one here.
#pragma once

#include "sinter/core/concepts.hpp"

namespace sinter::metrics {

// Names in messages.
struct write_f1_of_a_confusion_matrix;
struct write_precision_of_a_confusion_matrix;
struct write_recall_of_a_confusion_matrix;
struct write_metrics_roc_auc;
struct write_metrics_running_mean_of_mse_loss;

SINTER_CLASS_NAMED_OTHERWISE(f1_score, write_f1_of_a_confusion_matrix)
SINTER_CLASS_NAMED_OTHERWISE(precision, write_precision_of_a_confusion_matrix)
SINTER_CLASS_NAMED_OTHERWISE(precision_score, write_precision_of_a_confusion_matrix)
SINTER_CLASS_NAMED_OTHERWISE(recall, write_recall_of_a_confusion_matrix)
SINTER_CLASS_NAMED_OTHERWISE(recall_score, write_recall_of_a_confusion_matrix)
SINTER_CLASS_NAMED_OTHERWISE(mean_squared_error, write_metrics_running_mean_of_mse_loss)
SINTER_CLASS_NAMED_OTHERWISE(auroc, write_metrics_roc_auc)
SINTER_CLASS_NAMED_OTHERWISE(roc_auc_score, write_metrics_roc_auc)

}  // namespace sinter::metrics

// sinter/train/fit.hpp: epochs over a loader, a score after each, the best weights kept, and a checkpoint.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sinter/data/loader.hpp"
#include "sinter/grad/variable.hpp"
#include "sinter/io/model_file.hpp"
#include "sinter/io/progress.hpp"
#include "sinter/metrics/running_mean.hpp"
#include "sinter/nn/state.hpp"
#include "sinter/optim/clip.hpp"
#include "sinter/ranks/run_checkpoint.hpp"

namespace sinter {

/// What an epoch of fit() came to.
struct epoch_record {
  index_t epoch = 0;
  double loss = 0;   ///< the mean over the samples, while the model changed
  double score = 0;  ///< after the epoch; the loss where there is no score
  double seconds = 0;
};

struct fit_options {
  index_t epochs = 10;            ///< those of a run that goes on included
  index_t patience = 0;           ///< ends after so many epochs without a better score; 0: never
  bool maximize = false;          ///< true: a larger score is better, such as an accuracy
  bool restore_best = true;       ///< the model ends with the weights of the best epoch, else of the last
  double clip_grad_norm = 0;      ///< 0: gradients are not clipped
  std::string checkpoint = {};    ///< a file that is written after each epoch, and read where it is there
  std::FILE* progress = nullptr;  ///< such as stdout, for a bar and a line of each epoch
  /// Called after each epoch, before the checkpoint is written; may set the rate of the optimizer for the next one.
  std::function<void(const epoch_record&)> on_epoch = {};
};

struct fit_history {
  std::vector<epoch_record> epochs;  ///< of this call
  index_t best_epoch = -1;           ///< -1: no score was a number
  double best_score = 0;
};

namespace detail {

/// Errors: value_error.
SINTER_SHARED_COLD void check_fit(const fit_options& o);
SINTER_SHARED_COLD std::string epoch_text(const epoch_record& r, bool scored);

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_fit(const fit_options& o) {
  if (o.epochs < 0 || o.patience < 0)
    refuse<value_error>({"fit: epochs ", o.epochs, " and patience ", o.patience, "; they must not be negative"});
  if (!(o.clip_grad_norm >= 0)) refuse<value_error>({"fit: clip_grad_norm ", o.clip_grad_norm, " is negative"});
}
SINTER_SHARED_COLD std::string epoch_text(const epoch_record& r, bool scored) {
  char text[96];
  if (scored) std::snprintf(text, sizeof text, "loss %.6g  score %.6g  %.1f s", r.loss, r.score, r.seconds);
  else std::snprintf(text, sizeof text, "loss %.6g  %.1f s", r.loss, r.seconds);
  return text;
}

#endif  // SINTER_DEFINES

/// An epoch over the loader; the mean loss.
template <class Model, class Optimizer, class Set, class Loss>
double fit_epoch(Model& model, Optimizer& optimizer, data_loader<Set>& loader, const Loss& loss_of,
                 const fit_options& options, progress_bar* bar) {
  metrics::running_mean mean;
  model.train();
  for (auto& [x, y] : loader) {
    optimizer.zero_grad();
    variable loss = loss_of(model, x, y);
    loss.backward();
    if (options.clip_grad_norm > 0) optim::clip_grad_norm(model, options.clip_grad_norm);
    optimizer.step();
    mean.add(static_cast<double>(loss.item()), static_cast<double>(y.shape()[0]));
    if (bar != nullptr) bar->advance();
  }
  return mean.weight() > 0 ? mean.value() : 0;
}

}  // namespace detail

/// Trains a model: for each epoch loss(model, x, y) of each batch, backward and a step, then score(model), in eval()
/// mode and without recording, by which the best epoch is found: the least score, or with `.maximize` the largest.
/// Without a score it is the mean loss of the epoch. Ends early after `.patience` epochs that were not better. With a
/// checkpoint the run goes on, bit for bit, where an earlier one stopped: the file holds what a run_checkpoint does,
/// and one of its name and ".best" the best weights, as nn::save. The history is that of this call, and the
/// model is then in eval() mode. For more, write the
/// loop: it is that of fit_epoch, in this file. Errors: value_error for options without sense; those of the functions,
/// of run_checkpoint and of nn::load.
///
///     auto history = fit(model, optimizer, loader,
///                        [](const auto& m, const auto& x, const auto& y) { return cross_entropy(m(x), y); },
///                        [&](const auto& m) { return accuracy_of(m, test); },
///                        {.epochs = 50, .patience = 5, .maximize = true, .checkpoint = "run.ckpt", .progress = stdout});
template <nn::is_module Model, class Optimizer, class Set, class Loss, class Score>
  requires std::invocable<const Score&, const Model&>
fit_history fit(Model& model, Optimizer& optimizer, data_loader<Set>& loader, const Loss& loss, const Score& score,
                const fit_options& options = {}) {
  constexpr bool scored = !std::is_null_pointer_v<decltype(score(model))>;
  detail::check_fit(options);
  fit_history history;
  nn::state_dict best;
  const std::string best_path = options.checkpoint + ".best";
  if (!options.checkpoint.empty() && run_checkpoint(options.checkpoint).exists()) {
    run_checkpoint(options.checkpoint).load(model, optimizer, loader, history.best_epoch, history.best_score);
    if (history.best_epoch >= 0) best = read_safetensors(best_path).entries();
  }
  const auto is_over = [&](index_t epoch) {
    return epoch >= options.epochs ||
           (options.patience > 0 && history.best_epoch >= 0 && epoch - history.best_epoch > options.patience);
  };
  for (index_t epoch = loader.epoch(); !is_over(epoch); epoch = loader.epoch()) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<progress_bar> bar;
    if (options.progress != nullptr) bar.emplace("epoch " + std::to_string(epoch), loader.size(), options.progress);
    epoch_record record{.epoch = epoch};
    record.score = record.loss = detail::fit_epoch(model, optimizer, loader, loss, options, bar ? &*bar : nullptr);
    if constexpr (scored) {
      model.eval();
      const no_grad guard;
      record.score = static_cast<double>(score(std::as_const(model)));
    }
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool is_better = options.maximize ? record.score > history.best_score : record.score < history.best_score;
    if (is_better || (history.best_epoch < 0 && !std::isnan(record.score))) {
      history.best_epoch = epoch;
      history.best_score = record.score;
      best = nn::state(model);
      if (!options.checkpoint.empty()) write_safetensors(best_path, best);
    }
    history.epochs.push_back(record);
    if (bar) bar->finish(detail::epoch_text(record, scored));
    if (options.on_epoch) options.on_epoch(record);
    if (!options.checkpoint.empty())
      run_checkpoint(options.checkpoint).save(model, optimizer, loader, history.best_epoch, history.best_score);
  }
  if (options.restore_best && history.best_epoch >= 0) nn::load_state(model, best);
  model.eval();
  return history;
}
/// The same without a score.
template <nn::is_module Model, class Optimizer, class Set, class Loss>
fit_history fit(Model& model, Optimizer& optimizer, data_loader<Set>& loader, const Loss& loss,
                const fit_options& options = {}) {
  return fit(model, optimizer, loader, loss, [](const Model&) { return nullptr; }, options);
}

}  // namespace sinter

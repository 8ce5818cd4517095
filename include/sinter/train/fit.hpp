// sinter/train/fit.hpp: epochs over a loader, a score after each, the best weights kept, and a checkpoint.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
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
#include "sinter/optim/update_bn.hpp"
#include "sinter/ranks/run_checkpoint.hpp"
#include "sinter/train/summary_writer.hpp"

namespace sinter {

// Names in messages.
struct fit_with_an_optimizer_that_steps_by_a_function_such_as_lbfgs;
struct write_the_loop_and_give_step_a_function;

/// What an epoch of fit() came to.
struct epoch_record {
  index_t epoch = 0;
  double loss = 0;   ///< the mean over the samples, while the model changed
  double score = 0;  ///< after the epoch; the loss where there is no score
  double seconds = 0;
};

struct fit_options {
  index_t epochs = 10;            ///< of this call, from where the loader stands; with a checkpoint of the whole run
  index_t patience = 0;           ///< ends after so many epochs without a better score; 0: never
  bool maximize = false;          ///< true: a larger score is better, such as an accuracy
  bool restore_best = true;       ///< the model ends with the weights of the best epoch, else of the last
  double clip_grad_norm = 0;      ///< 0: gradients are not clipped
  std::string checkpoint = {};    ///< a file that is written after each epoch, and read where it is there
  std::string log = {};           ///< a folder, to which a summary_writer writes loss and score of each epoch
  std::FILE* progress = nullptr;  ///< such as stdout, for a bar and a line of each epoch
  /// Called after each epoch, before the checkpoint is written; may set the rate of the optimizer for the next one.
  std::function<void(const epoch_record&)> on_epoch = {};
};

struct fit_history {
  std::vector<epoch_record> epochs;  ///< of this call
  index_t best_epoch = -1;           ///< -1: no score was a number
  double best_score = std::numeric_limits<double>::quiet_NaN();
};

namespace detail {

template <class Optimizer>
concept steps_by_itself = requires(Optimizer& o) { o.step(); };

/// Errors: value_error; io_error for a checkpoint that cannot be written.
SINTER_SHARED_COLD void check_fit(const fit_options& o);
SINTER_SHARED_COLD std::string epoch_text(const epoch_record& r, bool scored);

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_fit(const fit_options& o) {
  if (o.epochs < 0 || o.patience < 0)
    refuse<value_error>({"fit: epochs ", o.epochs, " and patience ", o.patience, "; they must not be negative"});
  if (!(o.clip_grad_norm >= 0))
    refuse<value_error>({"fit: clip_grad_norm is ", o.clip_grad_norm, "; it must be 0 or more"});
  if (o.checkpoint.empty()) return;
  file_info info;
  for (const char* const end : {"", ".best"})
    if (const std::string path = o.checkpoint + end; tell_file(path.c_str(), info) && is_folder(info))
      refuse<io_error>({"fit: the checkpoint ", path, " is a directory, not a file; name a file in it"});
  const std::string folder = o.checkpoint.substr(0, o.checkpoint.find_last_of(ends_of_folders) + 1) + ".";
  if (!tell_file(folder.c_str(), info) || !is_folder(info))
    refuse<io_error>({"fit: the checkpoint ", o.checkpoint, " lies in no folder that is there; make the folder first"});
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
    if constexpr (requires { optimizer.backward(loss); }) {  // a policy, which scales it
      optimizer.backward(loss);
      if (options.clip_grad_norm > 0) optimizer.clip_grad_norm(model, options.clip_grad_norm);
    } else {
      loss.backward();
      if (options.clip_grad_norm > 0) optim::clip_grad_norm(model, options.clip_grad_norm);
    }
    optimizer.step();
    mean.add(static_cast<double>(loss.item()), static_cast<double>(y.shape()[0]));
    if (bar != nullptr) bar->advance();
  }
  return mean.weight() > 0 ? mean.value() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace detail

/// Trains a model: for each epoch loss(model, x, y) of each batch, backward and a step, then score(model), in eval()
/// mode and without recording, by which the best epoch is found: the least score, or with `.maximize` the largest.
/// Without a score it is the mean loss of the epoch. Runs `.epochs` epochs from where the loader stands, whose number
/// the records have, or fewer where `.patience` epochs of this call were not better. With a
/// checkpoint the run goes on, bit for bit, where an earlier one stopped, and both numbers are those of the whole run:
/// the file holds what a run_checkpoint does, and one of its name and ".best" the best weights, as nn::save. The
/// history is that of this call, and the model is then in eval() mode. An exception leaves the loader at the beginning
/// of its epoch, the model in train() mode, and weights as they are: the next call runs that epoch again, with a
/// checkpoint from the weights before it. For more, write the loop: it is that of fit_epoch, in this file. Errors:
/// value_error for options without sense and a loader without batches; io_error for a checkpoint whose folder is not
/// there; those of the functions, of run_checkpoint, of nn::load and of summary_writer.
///
///     auto history = fit(model, optimizer, loader,
///                        [](const auto& m, const auto& x, const auto& y) { return cross_entropy(m(x), y); },
///                        [&](const auto& m) { return accuracy_of(m, test); },
///                        {.epochs = 50, .patience = 5, .maximize = true, .checkpoint = "run.ckpt", .progress = stdout});
template <nn::is_module Model, class Optimizer, class Set, class Loss, class Score>
  requires(std::invocable<const Score&, const Model&> && detail::steps_by_itself<Optimizer>)
fit_history fit(Model& model, Optimizer& optimizer, data_loader<Set>& loader, const Loss& loss, const Score& score,
                const fit_options& options = {}) {
  constexpr bool scored = !std::is_null_pointer_v<decltype(score(model))>;
  detail::check_fit(options);
  fit_history history;
  nn::state_dict best;
  const std::string best_path = options.checkpoint + ".best";
  const bool lasts = !options.checkpoint.empty();
  index_t better = loader.epoch() - 1;  // the last epoch that was, or the one before the first
  const index_t first = lasts ? 0 : loader.epoch();
  if (lasts && run_checkpoint(options.checkpoint).exists()) {
    run_checkpoint(options.checkpoint).load(model, optimizer, loader, better, history.best_score);
    if (!std::isnan(history.best_score)) {
      history.best_epoch = better;
      best = read_safetensors(best_path).entries();
    }
  }
  const auto is_over = [&](index_t epoch) {
    return epoch - first >= options.epochs || (options.patience > 0 && epoch - better > options.patience);
  };
  std::optional<summary_writer> writer;
  if (!options.log.empty() && !is_over(loader.epoch()))
    writer.emplace(options.log, summary_writer_options{.purge_step = loader.epoch()});
  for (index_t epoch = loader.epoch(); !is_over(epoch); epoch = loader.epoch()) {
    if (loader.size() == 0) optim::detail::refuse_no_batches("fit");
    loader_position start = loader.position();
    if (start.epoch != epoch) start = {epoch, 0};  // a loop was left by `break`
    try {
      const auto begin = std::chrono::steady_clock::now();
      std::optional<progress_bar> bar;
      if (options.progress != nullptr) bar.emplace("epoch " + std::to_string(epoch), loader.size(), options.progress);
      epoch_record record{.epoch = epoch};
      record.score = record.loss = detail::fit_epoch(model, optimizer, loader, loss, options, bar ? &*bar : nullptr);
      if constexpr (scored) {
        model.eval();
        const no_grad guard;
        record.score = static_cast<double>(score(std::as_const(model)));
      }
      record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (std::isnan(history.best_score) ? !std::isnan(record.score)
          : options.maximize             ? record.score > history.best_score
                                         : record.score < history.best_score) {
        history.best_epoch = better = epoch;
        history.best_score = record.score;
        best = nn::state(model);
        if (lasts) write_safetensors(best_path, best);
      }
      history.epochs.push_back(record);
      if (bar) bar->finish(detail::epoch_text(record, scored));
      if (options.on_epoch) options.on_epoch(record);
      if (writer) {
        writer->add_scalar("loss", record.loss, epoch);
        if (scored) writer->add_scalar("score", record.score, epoch);
      }
      if (lasts) run_checkpoint(options.checkpoint).save(model, optimizer, loader, better, history.best_score);
    } catch (...) {
      loader.set_position(start);
      model.train();
      throw;
    }
  }
  if (options.restore_best && history.best_epoch >= 0) nn::load_state(model, best);
  model.eval();
  return history;
}
/// The same without a score.
template <nn::is_module Model, class Optimizer, class Set, class Loss>
  requires(detail::steps_by_itself<Optimizer>)
fit_history fit(Model& model, Optimizer& optimizer, data_loader<Set>& loader, const Loss& loss,
                const fit_options& options = {}) {
  return fit(model, optimizer, loader, loss, [](const Model&) { return nullptr; }, options);
}
template <nn::is_module Model, class Optimizer, class Set, class Loss,
          class Problem = fit_with_an_optimizer_that_steps_by_a_function_such_as_lbfgs,
          class Fix = write_the_loop_and_give_step_a_function>
  requires(!detail::steps_by_itself<Optimizer>)
fit_history fit(Model&, Optimizer&, data_loader<Set>&, const Loss&, const fit_options& = {}) = delete;
template <nn::is_module Model, class Optimizer, class Set, class Loss, class Score,
          class Problem = fit_with_an_optimizer_that_steps_by_a_function_such_as_lbfgs,
          class Fix = write_the_loop_and_give_step_a_function>
  requires(std::invocable<const Score&, const Model&> && !detail::steps_by_itself<Optimizer>)
fit_history fit(Model&, Optimizer&, data_loader<Set>&, const Loss&, const Score&, const fit_options& = {}) = delete;

}  // namespace sinter

// tests/train/fit_test.cpp: the training loop: what it ends with, when, and that it goes on as if it had not stopped.
#include "../catch.hpp"

#include <cmath>

#include <sinter/data.hpp>
#include <sinter/metrics.hpp>
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

#include "../io/folder.hpp"
#include "events.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

/// Points inside and outside of a circle.
struct run {
  generator gen{3};
  tensor<float, 2> points = randn(gen, {120, 2});
  tensor<std::int64_t, 1> labels = cast<std::int64_t>(sum(square(points), 1) < 1.2f);
  nn::sequential<nn::linear<>, nn::tanh, nn::dropout<>, nn::linear<>> model{
      nn::linear(2, 16, gen), nn::tanh(), nn::dropout(0.1, gen), nn::linear(16, 2, gen)};
  optim::adam optimizer{model, {.lr = 0.03}};
  data_loader<tensor_dataset<tensor<float, 2>, tensor<std::int64_t, 1>>> loader{tensor_dataset(points, labels),
                                                                                {.batch_size = 16, .shuffle = true}};

  double accuracy() const {
    metrics::accuracy right;
    right.add(infer(model)(points), labels);
    return right.value();
  }
  std::vector<float> weights() const {
    std::vector<float> all;
    model.for_each_parameter([&](const std::string&, const auto& p) {
      const tensor dense = p.value().contiguous();
      all.insert(all.end(), dense.begin(), dense.end());
    });
    return all;
  }
};
const auto loss = [](const auto& model, const auto& x, const auto& y) { return cross_entropy(model(x), y); };

}  // namespace

TEST_CASE("fit trains a model, and tells each epoch") {
  run r;
  std::vector<index_t> told;
  bool is_plain = false;
  const auto history = fit(
      r.model, r.optimizer, r.loader, loss,
      [&](const auto& m) {
        is_plain = variable(m(r.points)).is_leaf() && all(m(r.points) == m(r.points)).item();  // no graph, no dropout
        return r.accuracy();
      },
      {.epochs = 30, .maximize = true, .on_epoch = [&](const epoch_record& e) { told.push_back(e.epoch); }});
  CHECK(history.epochs.size() == 30);
  CHECK(told.size() == 30);
  CHECK(told.back() == 29);
  CHECK(is_plain);
  CHECK(history.epochs.back().loss < 0.5 * history.epochs.front().loss);
  CHECK(history.best_score > 0.9);
  CHECK(r.accuracy() == history.best_score);  // its weights are back
  for (const epoch_record& e : history.epochs) CHECK(e.score <= history.best_score);
  CHECK(history.epochs[static_cast<std::size_t>(history.best_epoch)].score == history.best_score);
}

TEST_CASE("fit ends after epochs without a better score, with the best weights or the last") {
  const std::vector<double> scores = {5, NAN, 3, 4, 3, 9, 1};
  for (const bool restore : {true, false}) {
    run r;
    std::size_t calls = 0;
    std::vector<float> best, last;
    const auto history = fit(r.model, r.optimizer, r.loader, loss,
                             [&](const auto&) {
                               last = r.weights();
                               if (calls == 2) best = last;
                               return scores.at(calls++);
                             },
                             {.epochs = 7, .patience = 2, .restore_best = restore});
    CHECK(calls == 5);
    CHECK(history.best_epoch == 2);
    CHECK(history.best_score == 3);
    CHECK(r.weights() == (restore ? best : last));
    CHECK(best != last);
  }
  run r;
  const auto nan = [](const auto&) { return NAN; };
  const auto none = fit(r.model, r.optimizer, r.loader, loss, nan, {.epochs = 9, .patience = 2});
  CHECK(none.best_epoch == -1);
  CHECK(std::isnan(none.best_score));
  CHECK(none.epochs.size() == 2);
}

TEST_CASE("fit begins where the loader stands, and counts epochs and patience from there") {
  run r;
  CHECK(fit(r.model, r.optimizer, r.loader, loss, {.epochs = 3}).epochs.size() == 3);
  const auto second =
      fit(r.model, r.optimizer, r.loader, loss, [](const auto&) { return 1; }, {.epochs = 9, .patience = 2});
  CHECK(second.best_epoch == 3);
  CHECK(second.epochs.size() == 3);
  CHECK(second.epochs.back().epoch == 5);
  const folder dir;  // with a checkpoint they are those of the whole run, NaN among its scores
  const auto nan = [](const auto&) { return NAN; };
  for (const std::size_t left : {std::size_t{1}, std::size_t{0}}) {
    run again;
    CHECK(fit(again.model, again.optimizer, again.loader, loss, nan,
              {.epochs = left == 1 ? 1 : 9, .patience = 2, .checkpoint = dir.file("nan.ckpt")})
              .epochs.size() == 1);
  }
}

TEST_CASE("fit writes the loss and score of each epoch for TensorBoard") {
  const folder dir;
  const std::string log = dir.file("runs/first");
  const auto points_of = [&](std::size_t file) {  // "loss 3" -> 0.25
    std::map<std::string, float> all;
    const auto paths = detail::files_in(log, "events.out.tfevents.", "");
    for (const auto& e : events::events_in(paths.at(file))) {
      if (!e.pieces.contains(5)) continue;
      const auto value = events::value_in(e);
      const std::string step = std::to_string(e.numbers.at(2));
      CHECK(all.emplace(value.pieces.at(1) + " " + step, events::scalar_in(value)).second);
    }
    return all;
  };
  run r;
  const auto three = [](const auto&) { return 3; };
  const auto history = fit(r.model, r.optimizer, r.loader, loss, three, {.epochs = 2, .log = log});
  const std::map<std::string, float> expected = {{"loss 0", static_cast<float>(history.epochs[0].loss)},
                                                 {"loss 1", static_cast<float>(history.epochs[1].loss)},
                                                 {"score 0", 3},
                                                 {"score 1", 3}};
  CHECK(points_of(0) == expected);
  fit(r.model, r.optimizer, r.loader, loss, {.epochs = 1, .log = log});  // goes on
  CHECK(points_of(1).size() == 1);
  CHECK(points_of(1).contains("loss 2"));
  CHECK(events::events_in(detail::files_in(log, "events", "").back())[1].numbers.at(2) == 2);  // purges what follows
  CHECK_THROWS_AS(fit(r.model, r.optimizer, r.loader, loss, {.log = dir.file("taken", "") + "/x"}), io_error);
  CHECK(r.loader.epoch() == 3);
}

TEST_CASE("an exception in fit leaves the epoch to be run again") {
  const folder dir;
  for (const std::string& path : {std::string(), dir.file("thrown.ckpt")}) {
    run r;
    int calls = 0;
    const auto score = [&](const auto&) {
      if (++calls == 3) throw error("mine");
      return 1.0 / calls;
    };
    const fit_options options{.epochs = 4, .checkpoint = path};
    CHECK_THROWS_WITH(fit(r.model, r.optimizer, r.loader, loss, score, options), "mine");
    CHECK(r.loader.epoch() == 2);
    CHECK(all(r.model(r.points) == r.model(r.points)).item() == false);  // dropout drops
    const auto rest = fit(r.model, r.optimizer, r.loader, loss, score, options);
    CHECK(rest.epochs.front().epoch == 2);
    CHECK(rest.epochs.size() == (path.empty() ? 4 : 2));
  }
}

TEST_CASE("a fit that goes on from its checkpoint has the bits of one that did not stop") {
  const folder dir;
  run whole;
  const auto all = fit(whole.model, whole.optimizer, whole.loader, loss, {.epochs = 8, .clip_grad_norm = 1});
  for (const index_t stop : {3, 7}) {
    const std::string path = dir.file("run" + std::to_string(stop) + ".ckpt");
    run first;
    fit(first.model, first.optimizer, first.loader, loss, {.epochs = stop, .clip_grad_norm = 1, .checkpoint = path});
    run second;
    const auto rest = fit(second.model, second.optimizer, second.loader, loss,
                          {.epochs = 8, .clip_grad_norm = 1, .checkpoint = path});
    CHECK(rest.epochs.size() == static_cast<std::size_t>(8 - stop));
    CHECK(rest.epochs.back().loss == all.epochs.back().loss);
    CHECK(rest.best_epoch == all.best_epoch);
    CHECK(second.weights() == whole.weights());
    run best;
    nn::load(best.model, path + ".best");
    CHECK(best.weights() == whole.weights());
    run done;
    CHECK(fit(done.model, done.optimizer, done.loader, loss, {.epochs = 8, .checkpoint = path}).epochs.empty());
    CHECK(done.weights() == whole.weights());
  }
}

TEST_CASE("fit scales losses, clips and steps by a policy of mixed precision, and goes on from its checkpoint") {
  const auto loss_of = [](const auto& m, const auto& x, const auto& y) {
    return cross_entropy(cast<float>(m(cast<half>(x))), y);
  };
  struct half_run : run {
    nn::sequential<nn::linear<half>, nn::tanh, nn::linear<half>> model{nn::linear<half>(2, 16, gen), nn::tanh(),
                                                                       nn::linear<half>(16, 2, gen)};
    optim::mixed_precision<optim::adam> policy{model, {.lr = 0.03}, {.init_scale = 0x1p22, .growth_interval = 20}};
  };
  const folder dir;
  const auto train = [&](half_run& r, fit_options options) {
    options.clip_grad_norm = 1;
    return fit(r.model, r.policy, r.loader, loss_of, options);
  };
  half_run whole, first, second;
  const auto all = train(whole, {.epochs = 8});
  CHECK(all.epochs.back().loss < 0.75 * all.epochs.front().loss);
  CHECK(whole.policy.scaler().get_scale() != 0x1p22);
  train(first, {.epochs = 3, .checkpoint = dir.file("half.ckpt")});
  const auto rest = train(second, {.epochs = 8, .checkpoint = dir.file("half.ckpt")});
  CHECK(rest.epochs.size() == 5);
  CHECK(rest.epochs.back().loss == all.epochs.back().loss);
  CHECK(second.policy.scaler().get_scale() == whole.policy.scaler().get_scale());
}

TEST_CASE("fit writes a line an epoch, and refuses options without sense") {
  run r;
  std::FILE* const lines = std::tmpfile();
  fit(r.model, r.optimizer, r.loader, loss, [](const auto&) { return 0.5; }, {.epochs = 2, .progress = lines});
  std::rewind(lines);
  char text[512] = "";
  const std::size_t size = std::fread(text, 1, sizeof text - 1, lines);
  std::fclose(lines);
  CHECK(std::count(text, text + size, '\n') == 2);
  CHECK_THAT(std::string(text), Contains("epoch 1  loss 0.") && Contains("score 0.5"));
  CHECK_THROWS_WITH(fit(r.model, r.optimizer, r.loader, loss, {.epochs = -1}), Contains("epochs -1 and patience 0"));
  CHECK_THROWS_AS(fit(r.model, r.optimizer, r.loader, loss, {.patience = -1}), value_error);
  CHECK_THROWS_WITH(fit(r.model, r.optimizer, r.loader, loss, {.clip_grad_norm = NAN}), Contains("is nan; it must be"));
  data_loader empty(r.loader.dataset(), {.batch_size = 999, .drop_last = true});
  CHECK_THROWS_WITH(fit(r.model, r.optimizer, empty, loss), Contains("fit: the loader has no batches"));
  const auto never = [](const auto& m, const auto& x, const auto& y) {
    FAIL("trains before it has looked at the path");
    return cross_entropy(m(x), y);
  };
  const folder dir;
  CHECK_THROWS_WITH(fit(r.model, r.optimizer, r.loader, never, {.checkpoint = dir.file("no/run.ckpt")}),
                    Contains("no/run.ckpt lies in no folder"));
  CHECK_THROWS_AS(fit(r.model, r.optimizer, r.loader, never, {.checkpoint = dir.file("")}), io_error);
  const auto fails = [](const auto& m, const auto& x, const auto& y) {
    if (x.extent(0) < 16) throw error("the last batch");
    return cross_entropy(m(x), y);
  };
  CHECK_THROWS_WITH(fit(r.model, r.optimizer, r.loader, fails, {.epochs = 3}), "the last batch");
}

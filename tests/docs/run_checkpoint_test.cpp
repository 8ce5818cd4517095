// tests/docs/run_checkpoint_test.cpp: the snippets of docs/checkpoints.md.
#include "../catch.hpp"
#include "two_classes.hpp"

#include <filesystem>

#include <sinter/data.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

/// Where training stood when interrupted() said so.
template <class F>
loader_position train(const std::string& path, index_t epochs, F interrupted) {
  // [docs:run]
  generator gen(42);
  nn::sequential model{nn::linear(4, 8, gen), nn::relu(), nn::dropout(0.5, gen), nn::linear(8, 2, gen)};
  optim::adam optimizer(model, {.lr = 1e-2});
  optim::lr_scheduler scheduler(optimizer, optim::cosine_lr{.period = 10});
  data_loader loader(two_classes(), {.batch_size = 8, .shuffle = true});
  double best = 1e9;

  run_checkpoint file(path);
  if (file.exists()) file.load(model, optimizer, scheduler, loader, best);
  while (loader.position().epoch < epochs) {
    for (const auto& [x, y] : loader) {  // after load(): the rest of the epoch
      optimizer.zero_grad();
      variable loss = cross_entropy(model(x), y);
      loss.backward();
      optimizer.step();
      best = std::min(best, double{loss.item()});
      file.save(model, optimizer, scheduler, loader, best);
      if (interrupted()) return loader.position();
    }
    scheduler.step();
  }
  // [docs:end]
  return loader.position();
}

}  // namespace

TEST_CASE("checkpoints: a run goes on where it was stopped") {
  const std::string path = (std::filesystem::temp_directory_path() / "sinter_docs_run.ckpt").string();
  std::filesystem::remove(path);
  const auto after = [](index_t steps) { return [steps]() mutable { return --steps == 0; }; };
  CHECK(train(path, 3, after(2)) == loader_position{0, 16});
  CHECK(train(path, 3, after(3)) == loader_position{1, 16});
  CHECK(train(path, 3, after(1)) == loader_position{1, 24});
  CHECK(train(path, 3, [] { return false; }) == loader_position{3, 0});
  {
    // [docs:read]
    safetensors file = read_safetensors(path);
    tensor weight = file.get<float, 2>("0.module.0.weight");
    tensor moments = file.get<float, 1>("1.optimizer.0.m");  // of parameter 0
    // [docs:end]
    CHECK(weight.numel() == moments.numel());
  }
  std::filesystem::remove(path);
}

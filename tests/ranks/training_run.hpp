// tests/ranks/training_run.hpp: a small training run with all that a checkpoint holds.
#pragma once

#include <cstring>
#include <string>

#include <sinter/data.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

/// The bytes of all parameters and buffers, one after the other.
template <class M>
std::string bits_of(const M& model) {
  std::string all;
  for (const auto& [name, value] : sinter::nn::state(model))
    all.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  return all;
}

inline auto points_of_classes() {
  sinter::generator gen(1);
  const sinter::tensor x = sinter::randn<double>(gen, {22, 4});
  return sinter::tensor_dataset(x, sinter::randint(gen, 0, 3, {22}));
}

inline auto small_network(sinter::generator& gen) {
  using namespace sinter;
  using block = nn::any_module<double, 2>;
  return nn::sequential{block(nn::sequential{nn::linear<double>(4, 6, gen), nn::tanh(), nn::dropout(0.3, gen)}),
                        nn::batch_norm1d<double>(6), nn::dropout(0.2, gen), nn::linear<double>(6, 3, gen)};
}

/// Five batches an epoch; what the seed makes is replaced by load().
template <class Optimizer>
struct training_run {
  sinter::generator gen;
  decltype(small_network(gen)) model = small_network(gen);
  Optimizer optimizer;
  sinter::optim::lr_scheduler<sinter::optim::exponential_lr> scheduler{optimizer, {0.7}};
  sinter::optim::grad_scaler scaler{{.growth_interval = 3}};
  sinter::data_loader<decltype(points_of_classes())> loader;
  sinter::index_t step = 0;

  training_run(std::uint64_t seed, const typename Optimizer::options_type& options,
               sinter::loader_options loading = {.batch_size = 5, .shuffle = true, .seed = 9})
      : gen(seed), optimizer(model, options), loader(points_of_classes(), loading) {}

  void save(const sinter::run_checkpoint& to) const { to.save(model, optimizer, scheduler, scaler, gen, loader, step); }
  void load(const sinter::run_checkpoint& from) { from.load(model, optimizer, scheduler, scaler, gen, loader, step); }

  /// Until step number `last`, calling after(*this) behind each step.
  template <class F>
  void train(sinter::index_t last, const F& after) {
    using namespace sinter;
    while (true) {
      for (const auto& [x, y] : loader) {
        optimizer.zero_grad();
        const variable scores = model(x + 0.1 * randn<double>(gen, x.shape()));
        variable(scaler.scale(cross_entropy(scores, y))).backward();
        scaler.step(optimizer);
        scaler.update();
        ++step;
        after(*this);
        if (step == last) return;
      }
      scheduler.step();
    }
  }
  void train(sinter::index_t last) {
    train(last, [](const auto&) {});
  }
};

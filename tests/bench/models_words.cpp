// tests/bench/models_words.cpp: a training step of a network for sequences of examples/models, the words in memory.
//
// models.py compiles it for each network as models.cpp; SAMPLE is the number of words of a sequence.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>

#include "../../examples/models/gpt.hpp"
#include "../../examples/models/lstm.hpp"

using namespace sinter;

namespace {

template <class Net>
struct training {
  using optimizer_type = decltype(make_optimizer(std::declval<const Net&>()));
  static constexpr bool has_state = requires(const Net& net) { net.zero_state(1); };

  Net net;
  optimizer_type optimizer = make_optimizer(net);
  typename Net::ids words, next;

  training(generator& gen) : net(ARGUMENTS gen) {
    // An LSTM takes a word of each sequence at a time.
    const index_t first = has_state ? SAMPLE : BATCH, second = has_state ? BATCH : SAMPLE;
    words = randint(gen, 0, CLASSES, {first, second}).to<DEVICE>();
    next = randint(gen, 0, CLASSES, {first, second}).to<DEVICE>();
  }
  template <class... State>
  void step(State&... state) {
    variable loss = net.loss(words, next, state...);
    optimizer.zero_grad();
    loss.backward();
    if constexpr (has_state) optim::clip_grad_norm(net, Net::largest_gradient);
    optimizer.step();
    if (std::isnan(loss.item())) std::exit(1);
  }
};

template <class Net>
std::function<void()> steps_of(generator& gen) {
  const auto all = std::make_shared<training<Net>>(gen);
  if constexpr (training<Net>::has_state) {
    const auto state = std::make_shared<typename Net::state>(all->net.zero_state(BATCH));
    return [=] { all->step(*state); };
  } else {
    return [=] { all->step(); };
  }
}

}  // namespace

std::function<void()> make_step(int threads) {
  set_num_threads(threads);
  generator gen(1);
  return steps_of<NETWORK>(gen);
}

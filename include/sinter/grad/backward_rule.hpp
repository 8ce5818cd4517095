// sinter/grad/backward_rule.hpp: kernels that do backward of two tape entries at once.
//
// A tape entry has the value that it made, and inputs. Backward visits the consumer of a value, which makes the value's
// gradient, and then the producer of the value, which reads that gradient. For some pairs one kernel does work of both:
// a matrix product can multiply its result by the slope of the activation before it. A backward_rule names such a
// kernel for a pair of kinds of entries. The walk in grad/tape.hpp looks it up; neither the tape nor the classes of the
// entries know of it, so a header of any op can register a rule.
#pragma once

#include <atomic>

#include "sinter/config.hpp"

namespace sinter::detail {

struct grad_state;
class any_backward_rule;

/// The rules whose consumer is of one kind. Its address stands for the kind.
struct rule_list {
  std::atomic<const any_backward_rule*> first{nullptr};
};
template <class Kind>
constinit inline rule_list rules_of_consumer{};

/// The kind of a tape entry: the class that rules see of it, and the object of that class. An entry without a kind
/// takes part in no rule.
struct entry_kind {
  rule_list* rules = nullptr;
  void* object = nullptr;
};
template <class Kind>
entry_kind kind_of(Kind& object) {
  return {&rules_of_consumer<Kind>, &object};
}

/// What a rule is given. The value has no other consumer, nobody holds it, and it has no gradient yet.
template <class Producer, class Consumer>
struct entry_pair {
  Producer& producer;
  grad_state& value;  ///< made by the producer
  Consumer& consumer;
  int input;           ///< the value is this input of the consumer
  grad_state& result;  ///< made by the consumer; it has its gradient
};

/// A rule without its types.
class any_backward_rule {
 public:
  any_backward_rule(const any_backward_rule&) = delete;
  any_backward_rule& operator=(const any_backward_rule&) = delete;

  const rule_list* const producer;  ///< stands for the kind
  const any_backward_rule* next = nullptr;

  virtual bool run(void* producer_object, grad_state& value, void* consumer_object, int input,
                   grad_state& result) const = 0;

 protected:
  explicit any_backward_rule(const rule_list& of_producer) : producer(&of_producer) {}
  ~any_backward_rule() = default;
  void add_to(rule_list& list);
};

/// Registers a kernel for backward of a consumer that reads the value of a producer. Must have static storage duration.
/// The kernel runs instead of the consumer's backward and returns true if it did all of that: each input has its
/// gradient. For the value it may do the producer's backward too, and sets value.producer_done then. If the kernel
/// returns false, or throws, it leaves no gradient at the producer's inputs; after false the walk tries the next rule,
/// and at last the consumer's own backward.
///
///     inline const backward_rule<scale_backward, scale_backward> scale_twice{&kernel};
///
/// A rule that is a variable template is registered where it is instantiated: see require().
template <class Producer, class Consumer>
class backward_rule final : public any_backward_rule {
 public:
  using kernel = bool (*)(const entry_pair<Producer, Consumer>&);

  explicit backward_rule(kernel k) : any_backward_rule(rules_of_consumer<Producer>), kernel_(k) {
    add_to(rules_of_consumer<Consumer>);
  }

  /// Does nothing. A call instantiates a rule that is a variable template, so that it is registered before main().
  void require() const noexcept {}

  bool run(void* producer_object, grad_state& value, void* consumer_object, int input,
           grad_state& result) const override {
    return kernel_(
        {*static_cast<Producer*>(producer_object), value, *static_cast<Consumer*>(consumer_object), input, result});
  }

 private:
  kernel kernel_;
};

/// Runs the first rule for this pair that applies. False if none does.
inline bool run_rules(const entry_kind& producer, grad_state& value, const entry_kind& consumer, int input,
                      grad_state& result) {
  if (producer.rules == nullptr) return false;
  for (const any_backward_rule* rule = consumer.rules->first.load(std::memory_order_acquire); rule != nullptr;
       rule = rule->next)
    if (rule->producer == producer.rules && rule->run(producer.object, value, consumer.object, input, result))
      return true;
  return false;
}

#if SINTER_DEFINES

SINTER_SHARED void any_backward_rule::add_to(rule_list& list) {
  next = list.first.load(std::memory_order_relaxed);
  while (!list.first.compare_exchange_weak(next, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

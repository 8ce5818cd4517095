// tests/compile_fail/run_checkpoint_of_closed_rule.cpp: an optimizer of the program's own that does not say what it
// keeps.
// FIRST-LINE: optimizer_whose_rule_does_not_list_its_state<
// FIRST-LINE: give_the_state_of_the_rule_a_function_each_saved
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

struct sign_rule {
  struct options {
    double lr = 0.001;
  };
  static void validate(const options&) {}
  template <class T, class D>
  struct state {
    index_t steps = 0;
    void reserve(index_t, const options&) {}
    void update(const optim::detail::flat_parameter<T, D>&, const options&, double, double) { ++steps; }
#ifndef SINTER_MUST_FAIL
    template <class F>
    void each_saved(const F& f) {
      f("steps", steps);
    }
#endif
  };
};

void f(const run_checkpoint& file, optim::rule_optimizer<sign_rule>& optimizer) { file.save(optimizer); }

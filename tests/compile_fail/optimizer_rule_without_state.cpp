// tests/compile_fail/optimizer_rule_without_state.cpp: a rule that does not say what it keeps and does.
// FIRST-LINE: an optimizer rule needs a template 'state<T, D>'
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

struct still_rule {
  struct options {
    double lr = 0;
  };
  static void validate(const options&) {}
#ifndef SINTER_MUST_FAIL
  template <class T, device D>
  struct state {
    void reserve(index_t, const options&) {}
    void update(const optim::detail::flat_parameter<T, D>&, const options&, double, double) {}
  };
#endif
};

}  // namespace

static_assert(sizeof(optim::rule_optimizer<still_rule>) > 0);

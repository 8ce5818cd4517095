// tests/compile_fail/checkpointed_of_offloaded.cpp: all tasks of an offloaded as one checkpointed module.
// FIRST-LINE: offloaded_has_no_forward
// FIRST-LINE: call_what_fetch_returns
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads) { return nn::checkpointed(heads); }
#else
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads) { return nn::checkpointed(heads.fetch(0)); }
#endif

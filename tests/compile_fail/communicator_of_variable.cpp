// tests/compile_fail/communicator_of_variable.cpp: gather of a tracked variable.
// FIRST-LINE: updating_a_tracked_variable_in_place
// FIRST-LINE: write_through_dot_value_instead
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator ranks, variable<float, 1> x) { ranks.all_gather(x).get(); }
#else
void f(thread_communicator ranks, variable<float, 1> x) { ranks.all_gather(x.value()).get(); }
#endif

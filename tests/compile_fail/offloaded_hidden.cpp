// tests/compile_fail/offloaded_hidden.cpp: tasks whose module hides its parameters.
// FIRST-LINE: offloaded_module_whose_members_are_hidden<
// FIRST-LINE: offload_the_modules_that_any_module_holds
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using two = nn::devices<cpu, numa<0>>;
#ifdef SINTER_MUST_FAIL
using one_task = nn::any_module<float, 2, cpu, nn::tracked, two>;
#else
using one_task = nn::layer_norm<>;
#endif
auto f(const one_task& m) { return nn::offloaded<numa<0>, one_task>(3, [&] { return m; }); }

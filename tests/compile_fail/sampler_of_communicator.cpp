// tests/compile_fail/sampler_of_communicator.cpp: a communicator in place of the sampler of a loader.
// FIRST-LINE: sampler_is_made_of_a_communicator_and_not_implicitly_from<sinter::thread_communicator>
// FIRST-LINE: write_distributed_sampler_of_it
#include <sinter/data/loader.hpp>
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
loader_options f(const thread_communicator& world) { return {.batch_size = 8, .sampler = world}; }
#else
loader_options f(const thread_communicator& world) { return {.batch_size = 8, .sampler = distributed_sampler(world)}; }
#endif

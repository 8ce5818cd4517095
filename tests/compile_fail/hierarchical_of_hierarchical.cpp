// tests/compile_fail/hierarchical_of_hierarchical.cpp: nodes of nodes.
// FIRST-LINE: hierarchy_of_what_is_no_host_communicator<(sinter::)?hierarchical_communicator>
// FIRST-LINE: pass_communicators_of_threads_sockets_or_mpi
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

void f(thread_communicator world) {
  hierarchical_communicator nodes(world, 4);
#ifdef SINTER_MUST_FAIL
  hierarchical_communicator racks(nodes, 16);
#else
  hierarchical_communicator racks(world, 16);
#endif
}

// tests/package/mpi/main.cpp: a program with ranks over MPI.
#ifndef ONE_HEADER
#include <sinter/ranks.hpp>
#endif
#include <sinter/sinter.hpp>

#include <cstdio>

using namespace sinter;

// [docs:mpi]
int main() {
  mpi_communicator ranks;  // mpirun -n 2 ./main
  tensor sum = ranks.all_reduce(tensor<float, 1>{static_cast<float>(ranks.rank() + 1)}).get();
  std::printf("rank %d of %d: %g\n", ranks.rank(), ranks.size(), static_cast<double>(sum(0)));
}
// [docs:end]

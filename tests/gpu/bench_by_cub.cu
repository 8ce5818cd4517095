// tests/gpu/bench_by_cub.cu: the folds of bench.cu by CUB; prints the same rows.
#define SINTER_WITH_CUB_FOLDS 1
#include "bench_folds.hpp"

int main() {
  if (!sinter::available<bench::g0>()) {
    std::fprintf(stderr, "bench_by_cub: there is no GPU\n");
    return 1;
  }
  sinter::generator gen(1);
  const auto draw = [&gen] { return sinter::randn<float, bench::g0>(gen, {sinter::index_t{64} << 20}); };
  bench::time_folds(draw(), draw());
  sinter::synchronize<bench::g0>();
}

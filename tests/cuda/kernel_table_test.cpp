// tests/cuda/kernel_table_test.cpp: every row of the table of kernel ops on a simulated GPU, against the CPU.
#include "../kernels/rows.hpp"
#include "compare.hpp"

// What <sinter/sequences.hpp> includes for GPUs, where they are not simulated.
#include "sinter/cuda/sequences.hpp"

using namespace kernel_table;

TEST_CASE("kernel ops give on a GPU what they give on the CPU", "[cuda][kernels]") {
  for_each_row([](const auto& row) {
    INFO(row.name);
    std::apply(
        [&](const auto&... shape) {
          int seeds = 0;
          const auto seed = [&] { return ++seeds; };  // a call, as operands are evaluated in any order
          CHECK(compare::values(row.formula, compare::numbers(shape, seed())...) < 2e-5);
          CHECK(compare::values(row.formula, compare::numbers<double>(shape, seed())...) < 1e-12);
          CHECK(compare::values(row.formula, compare::numbers<sinter::half>(shape, seed())...) < 2e-3);
          CHECK(compare::gradients(row.formula, compare::numbers(shape, seed())...) < 2e-4);
          CHECK(compare::gradients(row.formula, compare::numbers<double>(shape, seed())...) < 1e-11);
        },
        row.shapes);
  });
}

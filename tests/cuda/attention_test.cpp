// tests/cuda/attention_test.cpp: attention on a GPU against plain loops in double.
#include <sinter/sequences.hpp>

#include "../kernels/attention.hpp"
#include "compare.hpp"

// What <sinter/sequences.hpp> includes for GPUs, where they are not simulated.
#include "sinter/cuda/attention.hpp"

using namespace sinter;
using plain::distance, plain::sizes, plain::usual_scale;

namespace attention_of_gpus {

template <class T>
using operands = plain::operands<T, cuda<0>>;

}  // namespace attention_of_gpus

using namespace attention_of_gpus;

TEMPLATE_TEST_CASE("attention on a GPU has the value and the gradients of plain loops", "[cuda][attention]", float,
                   double, sinter::half, bfloat16) {
  for (const sizes& s :
       {sizes{1, 1, 1, 1, 1, 1, 1}, sizes{2, 3, 3, 5, 5, 4, 4}, sizes{2, 4, 2, 19, 40, 12, 5},
        sizes{1, 2, 1, 70, 131, 33, 17}, sizes{1, 1, 1, 67, 65, 130, 140}, sizes{1, 4, 1, 2, 200, 24, 40}})
    for (const bool causal : {false, true}) {
      if (sizeof(TestType) == 2 && s.size != 12) continue;
      INFO(s.queries << " x " << s.keys << " of " << s.size << ", " << s.value_size << (causal ? ", causal" : ""));
      const operands<TestType> o(s);
      plain::rules r{usual_scale(s.size)};
      if (causal) r.seen = plain::causal(s.queries, s.keys);
      plain::compare(o, r, [&](const auto&... x) { return attention(x..., {.causal = causal}); });
    }
}

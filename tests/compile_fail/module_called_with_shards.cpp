// tests/compile_fail/module_called_with_shards.cpp: a module called with a batch in shards, of which it joins no results.
// FIRST-LINE: module_called_with_what_is_no_tensor<(sinter::)?(nn::)?shards<
// FIRST-LINE: pass_a_tensor_or_a_variable
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::data_parallel_over<nn::layer_norm<>, numa<0>, numa<1>>;

#ifdef SINTER_MUST_FAIL
void f(const model& m, const tensor<float, 2>& x) { m(nn::shard<numa<0>, numa<1>>(x)); }
#else
void f(const model& m, const tensor<float, 2>& x) { m(x); }
#endif

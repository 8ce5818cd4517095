// tests/compile_fail/run_checkpoint_into_const.cpp: what is loaded into has to change.
// FIRST-LINE: checkpoint_cannot_load_into<const sinter::nn::linear<
// FIRST-LINE: pass_a_variable_that_is_not_const
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using model_type = const nn::linear<>;
#else
using model_type = nn::linear<>;
#endif

void f(const run_checkpoint& file, generator& gen, model_type& model) { file.load(gen, model); }

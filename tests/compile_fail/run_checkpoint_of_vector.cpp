// tests/compile_fail/run_checkpoint_of_vector.cpp: a checkpoint of something that it does not know.
// FIRST-LINE: checkpoint_cannot_hold<std::vector<double>
// FIRST-LINE: pass_modules_optimizers_schedulers_scalers_generators_loaders_or_numbers
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

void f(const run_checkpoint& file, nn::linear<>& model, std::vector<double>& losses) {
#ifdef SINTER_MUST_FAIL
  file.save(model, losses);
#else
  file.save(model, losses.back());
#endif
}

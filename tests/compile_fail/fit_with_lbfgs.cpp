// tests/compile_fail/fit_with_lbfgs.cpp: lbfgs steps by a function, which fit does not give.
// FIRST-LINE: fit_with_an_optimizer_that_steps_by_a_function_such_as_lbfgs
// FIRST-LINE: write_the_loop_and_give_step_a_function
// LINES-GCC: 18
// LINES-NVCC: 18
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using optimizer = optim::lbfgs;
#else
using optimizer = optim::sgd;
#endif

void f(nn::linear<>& model, optimizer& steps, data_loader<tensor_dataset<tensor<float, 2>, tensor<float, 2>>>& loader) {
  fit(model, steps, loader, [](const auto& m, const auto& x, const auto& y) { return mse_loss(m(x), y); });
}

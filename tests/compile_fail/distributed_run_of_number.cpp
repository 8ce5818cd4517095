// tests/compile_fail/distributed_run_of_number.cpp: a run whose loss is a number, so that nothing can be differentiated.
// FIRST-LINE: loss_that_is_no_variable<float
// FIRST-LINE: return_the_loss_as_the_model_gives_it
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

struct batch_of_rows {
  tensor<float, 2> rows;
  index_t size() const { return rows.extent(0); }
};
void f(nn::linear<float>& model, thread_communicator world, const std::vector<batch_of_rows>& batches) {
  nn::distributed ranks(model, world);
  const auto loss = [&](const batch_of_rows& x) {
    variable<float, 0> l = mean(square(model(x.rows)));
#ifdef SINTER_MUST_FAIL
    return l.item();
#else
    return l;
#endif
  };
  ranks.run(batches, loss, [] {});
}

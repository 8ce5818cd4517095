// tests/compile_fail/summary_scalar_of_variable.cpp: a loss for a summary_writer where a number is needed.
// FIRST-LINE: tensor_of_rank_in_place_of<0, double>
// FIRST-LINE: write_dot_item
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(summary_writer& writer, const variable<float, 0>& loss) { writer.add_scalar("loss", loss, 1); }
#else
void f(summary_writer& writer, const variable<float, 0>& loss) { writer.add_scalar("loss", loss.item(), 1); }
#endif

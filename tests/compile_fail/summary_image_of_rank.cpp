// tests/compile_fail/summary_image_of_rank.cpp: a batch where a summary_writer takes one picture.
// FIRST-LINE: image_of_elements_and_rank<float, 4>
// FIRST-LINE: pass_uint8_or_floating_point_elements_of_shape_c_h_w
#include <sinter/sinter.hpp>
#include <sinter/train.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(summary_writer& writer, const tensor<float, 4>& images) { writer.add_image("first", images, 1); }
#else
void f(summary_writer& writer, const tensor<float, 4>& images) { writer.add_image("first", images[0], 1); }
#endif

// tests/compile_fail/nms_on_a_gpu.cpp: nms of boxes on a GPU.
// FIRST-LINE: nms_on_device<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_the_operands_to_the_host_with_dot_to_cpu
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2, cuda<0>>& boxes, const tensor<float, 1, cuda<0>>& scores) { return nms(boxes, scores, 0.5); }
#else
auto f(const tensor<float, 2>& boxes, const tensor<float, 1>& scores) { return nms(boxes, scores, 0.5); }
#endif

// tests/compile_fail/nms_of_classes.cpp: nms with classes behind the threshold.
// FIRST-LINE-GCC: nms_with_more_than_boxes_scores_and_threshold.*write_batched_nms_with_classes_before_the_threshold
// EXPECT: nms_with_more_than_boxes_scores_and_threshold
// EXPECT: write_batched_nms_with_classes_before_the_threshold
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& boxes, const tensor<float, 1>& scores) { return nms(boxes, scores, 0.5, 1); }
#else
auto f(const tensor<float, 2>& boxes, const tensor<float, 1>& scores) { return nms(boxes, scores, 0.5); }
#endif

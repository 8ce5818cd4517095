// tests/compile_fail/metric_of_float_labels.cpp: labels of a metric that are floating-point numbers.
// FIRST-LINE-GCC: labels_of_elements_and_rank<float, 1>.*pass_integers_of_shape_n
// EXPECT: labels_of_elements_and_rank<float, 1>
// EXPECT: pass_integers_of_shape_n
#include <sinter/metrics.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(metrics::accuracy& m, const tensor<float, 2>& x, const tensor<float, 1>& y) { m.add(x, y); }
#else
void f(metrics::accuracy& m, const tensor<float, 2>& x, const tensor<int, 1>& y) { m.add(x, y); }
#endif

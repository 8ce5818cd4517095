// tests/compile_fail/multilabel_margin_labels.cpp: labels that are numbers with a fraction.
// FIRST-LINE: logits_and_labels_with_elements_of_type<float, float\s?>
// FIRST-LINE: use_floating_logits_and_integer_labels
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& x, const tensor<float, 2>& t) { return multilabel_margin_loss(x, t); }
#else
auto f(const variable<float, 2>& x, const tensor<float, 2>& t) { return multilabel_margin_loss(x, cast<int>(t)); }
#endif

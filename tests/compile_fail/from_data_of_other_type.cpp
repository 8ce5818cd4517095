// tests/compile_fail/from_data_of_other_type.cpp: host values of another element type than the one that is written.
// LINES-GCC: 13
// FIRST-LINE: host_values_of_another_element_type<double, float>
// FIRST-LINE: write_from_data_without_the_type_and_cast_the_tensor
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const std::vector<double>& v) { return from_data<float>(v, {3}); }
#else
tensor<float, 1> f(const std::vector<double>& v) { return cast<float>(from_data(v, {3})); }
#endif

// tests/compile_fail/split_by_number.cpp: the size of the test without its name.
// FIRST-LINE-GCC: test_size_that_is_not_in_braces.*write_dot_test_size_in_braces
// EXPECT: test_size_that_is_not_in_braces
// EXPECT: write_dot_test_size_in_braces
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(generator& gen, const tensor_dataset<tensor<float, 2>, tensor<int, 1>>& set) { return train_test_split(gen, set, 0.2); }
#else
auto f(generator& gen, const tensor_dataset<tensor<float, 2>, tensor<int, 1>>& set) { return train_test_split(gen, set, {.test_size = 0.2}); }
#endif

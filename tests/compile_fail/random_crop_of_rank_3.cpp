// tests/compile_fail/random_crop_of_rank_3.cpp: random_crop() of one image instead of a batch.
// FIRST-LINE-GCC: augmentation_of_other_than_host_images_of_rank_4.*reshape_to_n_c_h_w_and_augment_before_dot_to
// EXPECT: augmentation_of_other_than_host_images_of_rank_4
// EXPECT: reshape_to_n_c_h_w_and_augment_before_dot_to
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(generator& gen, const tensor<float, 3>& x) { return random_crop(gen, x, {4, 4}); }
#else
auto f(generator& gen, const tensor<float, 4>& x) { return random_crop(gen, x, {4, 4}); }
#endif

// tests/compile_fail/random_horizontal_flip_on_gpu.cpp: random_horizontal_flip() of images on a GPU.
// FIRST-LINE-GCC: augmentation_of_other_than_host_images_of_rank_4.*reshape_to_n_c_h_w_and_augment_before_dot_to
// EXPECT: augmentation_of_other_than_host_images_of_rank_4
// EXPECT: reshape_to_n_c_h_w_and_augment_before_dot_to
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(generator& gen, const tensor<float, 4, cuda<0>>& x) { return random_horizontal_flip(gen, x); }
#else
auto f(generator& gen, const tensor<float, 4, cpu>& x) { return random_horizontal_flip(gen, x); }
#endif

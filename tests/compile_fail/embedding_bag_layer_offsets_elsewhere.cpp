// tests/compile_fail/embedding_bag_layer_offsets_elsewhere.cpp: a layer of bags called with offsets on another device.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<0>, (sinter::)?cpu>
// EXPECT: copy_the_input_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::embedding_bag<>& words, tensor<int, 1> ids, tensor<int, 1, numa<0>> offsets) { words(ids, offsets); }
#else
void f(const nn::embedding_bag<>& words, tensor<int, 1> ids, tensor<int, 1, numa<0>> offsets) { words(ids, offsets.to<cpu>()); }
#endif

// tests/compile_fail/concat_of_sequences.cpp: padded batches have lengths of their own.
// FIRST-LINE: cannot be put together
// FIRST-LINE: sequence_dataset of all sequences
// LINES-GCC: 16
// LINES-NVCC: 16
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using words = tensor<std::int64_t, 1>;
#ifdef SINTER_MUST_FAIL
index_t f(const sequence_dataset<words, words>& a, const sequence_dataset<words, words>& b) {
  return concat_dataset(a, b).size();
}
#else
index_t f(const tensor_dataset<words, words>& a, const tensor_dataset<words, words>& b) {
  return concat_dataset(a, b).size();
}
#endif

// tests/compile_fail/embedding_bag_without_offsets.cpp: embedding_bag() of a list of ids without where bags begin.
// FIRST-LINE: bags_without_offsets_of_rank<1>
// FIRST-LINE: use_ids_of_rank_2_or_pass_offsets
// LINES-CLANG: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 1> ids, tensor<int, 1>, tensor<float, 2> table) { embedding_bag(ids, table); }
#else
void f(tensor<int, 1> ids, tensor<int, 1> offsets, tensor<float, 2> table) { embedding_bag(ids, offsets, table); }
#endif

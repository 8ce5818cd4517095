// tests/compile_fail/kernels_on_gpu_in_host_only_file.cpp: ops with kernels of their own, on a GPU in a file for the
// host compiler: one message, whatever the op asks of its kernels.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// LINES-GCC: 8
// LINES-CLANG: 30
#include <sinter/sinter.hpp>

using namespace sinter;
using labels_on_gpu = tensor<std::int64_t, 1, cuda<0>>;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2, cuda<0>> x, labels_on_gpu labels) {
  variable losses = cross_entropy(softmax(x, 1), labels, reduction::none);
  auto [values, indices] = topk(index_select(x, 0, labels), 3, 1);
  tensor counts = unique(bincount(labels)).counts;
}
#else
auto f(variable<float, 2, cuda<0>> x) { return softmax(x, 1); }
#endif

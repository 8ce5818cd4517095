// tests/compile_fail/attention_elsewhere.cpp: attention() with keys of another device.
// LINES-CLANG: 60
// FIRST-LINE: operands_on_different_devices<.*cpu.*, .*cuda<0>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/ops/attention.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 4> q, tensor<float, 4, cuda<0>> k, tensor<float, 4> v) { return attention(q, k, v); }
#else
auto f(tensor<float, 4> q, tensor<float, 4> k, tensor<float, 4> v) { return attention(q, k, v); }
#endif

// tests/compile_fail/module_lists_tensor.cpp: a plain tensor in the list of a tracked module, where it is neither.
// EXPECT: plain_tensor_listed_by_a_tracked_module<(sinter::)?tensor<float, 1
// EXPECT: declare_it_as_nn_parameter_or_nn_buffer
// LINES-GCC: 16
// LINES-CLANG: 30
// LINES-NVCC: 24
#include <sinter/sinter.hpp>

using namespace sinter;

struct model : nn::module<model> {
  using device_type = cpu;
  using kind = nn::tracked;
  template <class F, class... M>
  static void visit(F&& f, M&... m) { f("scale", m.scale...); }
#ifdef SINTER_MUST_FAIL
  tensor<float, 1> scale;
#else
  nn::buffer<float, 1> scale;
#endif
};

model f() { return model(); }

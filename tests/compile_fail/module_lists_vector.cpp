// tests/compile_fail/module_lists_vector.cpp: a list of members with a vector of modules, which nothing would train.
// EXPECT: member_that_modules_do_not_understand<std::vector<(sinter::)?nn::linear<
// EXPECT: make_it_an_nn_module_list
// LINES-GCC: 16
// LINES-CLANG: 30
// LINES-NVCC: 24
#include <vector>

#include <sinter/sinter.hpp>

using namespace sinter;

struct model : nn::module<model> {
  using device_type = cpu;
  using kind = nn::tracked;
  template <class F, class... M>
  static void visit(F&& f, M&... m) { f("layers", m.layers...); }
#ifdef SINTER_MUST_FAIL
  std::vector<nn::linear<>> layers;
#else
  std::vector<int> layers;
#endif
};

model f() { return model(); }

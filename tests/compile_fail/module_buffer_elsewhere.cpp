// tests/compile_fail/module_buffer_elsewhere.cpp: a module that leaves a buffer behind on the cpu.
// FIRST-LINE: parameter_on_another_device_than_its_module<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: declare_the_parameter_on_the_device_of_the_module
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
template <device D, class Kind = nn::tracked>
struct centred : nn::module<centred<D, Kind>> {
  nn::buffer<float, 1> mean;
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("mean", m.mean...);
  }
};
#else
template <device D, class Kind = nn::tracked>
struct centred : nn::module<centred<D, Kind>> {
  nn::buffer<float, 1, D> mean;
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("mean", m.mean...);
  }
};
#endif
void f() { centred<numa<0>> m; static_cast<void>(m); }

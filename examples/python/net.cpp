// net.cpp: a network of Sinter as a Python module. Arrays go in and come out without a copy, by DLPack.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

#include <utility>

namespace py = nanobind;
using namespace sinter;

namespace {

/// The memory of an array of NumPy or PyTorch, of this element type and rank.
template <class T, int R>
tensor<T, R> from_python(const py::object& array) {
  const py::object capsule = array.attr("__dlpack__")();
  auto* const given = static_cast<dlpack::managed_tensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  const tensor x = from_dlpack<T, R>(given);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");  // x ends it now
  return x;
}

/// A result, which numpy.from_dlpack() and torch.from_dlpack() take.
struct result {
  tensor<float, 2> value;

  py::object to_python(const py::kwargs&) const {
    return py::steal(PyCapsule_New(to_dlpack(value), "dltensor", [](PyObject* capsule) {
      if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // somebody has taken it
      auto* const mine = static_cast<dlpack::managed_tensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
      mine->destroy(mine);
    }));
  }
  std::pair<int, int> device() const { return {int(dlpack::device_kind::cpu), 0}; }
};

class net {
 public:
  net(index_t width, std::uint64_t seed) : net(width, generator(seed)) {}

  /// Trains on points (N,2) and classes (N); returns the last loss.
  double fit(const py::object& points, const py::object& classes, int steps) {
    const tensor x = from_python<float, 2>(points);
    const tensor y = from_python<std::int64_t, 1>(classes);
    py::gil_scoped_release others_may_run;
    for (int step = 1;; ++step) {
      variable loss = cross_entropy(model_(x), y);
      optimizer_.zero_grad();
      loss.backward();
      optimizer_.step();
      if (step >= steps) return loss.item();
    }
  }
  /// Scores (N,2) of points (N,2).
  result scores(const py::object& points) const { return {eval(infer(model_)(from_python<float, 2>(points)))}; }

 private:
  net(index_t width, generator gen)
      : model_{nn::linear(2, width, gen), nn::tanh(), nn::linear(width, width, gen), nn::tanh(),
               nn::linear(width, 2, gen)},
        optimizer_(model_, {.lr = 0.01}) {}

  nn::sequential<nn::linear<>, nn::tanh, nn::linear<>, nn::tanh, nn::linear<>> model_;
  optim::adam optimizer_;
};

}  // namespace

NB_MODULE(net, module) {
  py::class_<result>(module, "Result").def("__dlpack__", &result::to_python).def("__dlpack_device__", &result::device);
  py::class_<net>(module, "Net")
      .def(py::init<index_t, std::uint64_t>(), py::arg("width") = 32, py::arg("seed") = 1)
      .def("fit", &net::fit, py::arg("points"), py::arg("classes"), py::arg("steps") = 300)
      .def("__call__", &net::scores);
}

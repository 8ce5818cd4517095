// tests/cuda/runtime/checked.hpp: a test on the fake machine, and tensors whose elements tell where they came from.
#pragma once

#include <sinter/sinter.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "../../catch.hpp"
#include "fake.hpp"

/// Four GPUs, of which the program uses the first; afterwards nothing has been misused, and the program's GPU is the
/// same.
class on_fake_gpus {
 public:
  on_fake_gpus() {
    fake_cuda::settings() = {};
    fake_cuda::misuses();
    cudaSetDevice(0);
  }
  on_fake_gpus(const on_fake_gpus&) = delete;
  on_fake_gpus& operator=(const on_fake_gpus&) = delete;
  ~on_fake_gpus() {
    fake_cuda::end_plan();
    CHECK(fake_cuda::misuses() == std::vector<std::string>{});
    CHECK(used() == gpu_);
    CHECK(cudaGetLastError() == cudaSuccess);
  }

  /// Makes this the program's GPU.
  void use(int gpu) { cudaSetDevice(gpu_ = gpu); }
  static int used() {
    int gpu = -1;
    cudaGetDevice(&gpu);
    return gpu;
  }

 private:
  int gpu_ = 0;
};

/// first, first + 1, ... as float.
inline sinter::tensor<float, 1> counting(sinter::index_t n, int first = 0) {
  return sinter::eval(sinter::arange<float>(static_cast<float>(n)) + static_cast<float>(first));
}
template <int R>
bool same(const sinter::tensor<float, R>& a, const sinter::tensor<float, R>& b) {
  return !sinter::eval(sinter::any(a != b)).item();
}

/// The text of the sinter::error that f throws; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const sinter::error& e) {
    return e.what();
  }
  return {};
}

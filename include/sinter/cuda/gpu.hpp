// sinter/cuda/gpu.hpp: what the backend asks of a GPU, done by CUDA.
#pragma once

#include <utility>

#include "sinter/core/beside.hpp"
#include "sinter/cuda/blas.hpp"
#include "sinter/cuda/conv_library.hpp"
#include "sinter/cuda/copy_beside.hpp"
#include "sinter/cuda/launch.hpp"
#include "sinter/cuda/pairs.hpp"
#if SINTER_WITH_CUDNN
#include "sinter/cuda/cudnn_conv.hpp"
#endif
#if SINTER_WITH_CUB_FOLDS
#include "sinter/cuda/cub_folds.hpp"
#endif

namespace sinter::cuda_impl {

template <device D>
struct gpu {
  static context& here() { return context_of<D>(); }
  static auto& memory() { return here().memory(); }
  static void synchronize() { here().synchronize(); }
  static std::size_t launches() { return here().launches(); }
  static index_fault* fault() { return here().fault(); }
  static index_fault* fault_address() { return here().fault_address(); }
  static unsigned* arrivals() { return here().arrivals(); }

  /// From CUDA 12.1 on.
  static constexpr std::size_t most_parameters = 32764;

  template <class Body>
  static void launch(const work& w, const Body& body, const launch_shape& shape) {
    static_assert(sizeof(Body) <= most_parameters);
    cuda_impl::launch(here(), w, body, shape);
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes) {
    context& c = here();
    const std::string what = c.name() + ": copying " + std::to_string(bytes) + " bytes to the host";
    auto held = c.capture().wait(what);
    const use_gpu current(c.gpu());
    if (!sinter::detail::copies_run_beside()) return c.downloads().to_host(c.stream(), to, from, bytes, what);
    copy_beside copy(c, what);
    copy.reads_from(c);
    held.unlock();
    c.downloads_beside().to_host(copy.stream(), to, from, bytes, what);
    copy.is_over();
  }
  static void copy_from_host(void* to, const void* from, std::size_t bytes) {
    context& c = here();
    const std::string what = c.name() + ": copying " + std::to_string(bytes) + " bytes from the host";
    auto held = c.capture().wait(what);
    const use_gpu current(c.gpu());
    if (!sinter::detail::copies_run_beside()) return c.uploads().to_gpu(c.stream(), to, from, bytes, what);
    copy_beside copy(c, what);
    copy.writes_to(to);
    held.unlock();
    c.uploads_beside().to_gpu(copy.stream(), to, from, bytes, what);
    copy.finish();
  }

  /// Runs after the work on From that makes the source, and before its memory is used for anything else.
  template <device From>
  static void copy_from_device(void* to, const void* from, std::size_t bytes) {
    context &to_here = here(), &there = context_of<From>();
    const std::string what =
        "copying " + std::to_string(bytes) + " bytes from " + there.name() + " to " + to_here.name();
    const bool in_order = &to_here < &there;  // the same for all threads, so that none waits for another in a circle
    auto first = (in_order ? to_here : there).capture().wait(what),
         second = (in_order ? there : to_here).capture().wait(what);
    to_here.open_path_from(there);
    const auto start = [&](cudaStream_t stream) {
      const use_gpu current(to_here.gpu());
      if (to_here.gpu() == there.gpu()) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), what);
      else check(cudaMemcpyPeerAsync(to, to_here.gpu(), from, there.gpu(), bytes, stream), what);
    };
    if (sinter::detail::copies_run_beside()) {
      copy_beside copy(to_here, what);
      copy.reads_from(there);
      copy.writes_to(to);
      first.unlock();
      second.unlock();
      start(copy.stream());
      return copy.finish();
    }
    to_here.wait_for(there);
    start(to_here.stream());
    try {
      there.wait_for(to_here);
    } catch (...) {
      ignore(cudaStreamSynchronize(to_here.stream()));
      throw;
    }
  }

  /// In order with the other work of this device, also in a step that is captured.
  static void copy_within(void* to, const void* from, std::size_t bytes) {
    context& c = here();
    const auto held = c.capture().enter("a copy");
    const use_gpu current(c.gpu());
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c.stream()),
          c.name() + ": copying " + std::to_string(bytes) + " bytes");
  }

  static memory_place place_of(const void* p) {
    context& c = here();
    const use_gpu current(c.gpu());
    cudaPointerAttributes found{};
    check(cudaPointerGetAttributes(&found, p), c.name() + ": asking where memory lies");
    switch (found.type) {
      case cudaMemoryTypeUnregistered:
        return {"host memory", "cpu"};
      case cudaMemoryTypeHost:
        return {"pinned host memory", "cpu"};
      case cudaMemoryTypeManaged:
        return {"managed memory, which moves between the host and GPUs", "cpu"};
      default:
        break;
    }
    if (found.device == c.gpu()) return {};
    const std::string gpu = "GPU " + std::to_string(found.device);
    return {"that of " + gpu + ", while " + c.name() + " is GPU " + std::to_string(c.gpu()),
            "the cuda<I> that is " + gpu};
  }

  template <class T, class To = T>
  static bool gemm(const blas_product& p) {
    return blas_of<D>().template run<T, To>(p);
  }

#if SINTER_WITH_CUDNN
  static convolutions_by_cudnn<D> convolutions() { return {}; }
#else
  static no_convolutions convolutions() { return {}; }
#endif

  static bool sort(pair_buffers& pairs, index_t n, int bits) {
    const pair_sorter other = other_sorter.load(std::memory_order_relaxed);
    if (other == nullptr) return false;
    other(here(), pairs, n, bits);
    return true;
  }

#if SINTER_WITH_CUB_FOLDS
  static cub_folds folds() { return {here()}; }
#else
  static no_folds folds() { return {}; }
#endif

  /// A sequence of work, to be started as a whole.
  class recording {
   public:
    recording() = default;
    recording(cudaGraphExec_t graph, std::size_t kernels) : graph_(graph), kernels_(kernels) {}
    recording(recording&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)), kernels_(other.kernels_) {}
    recording& operator=(recording&& other) noexcept {
      std::swap(graph_, other.graph_);
      std::swap(kernels_, other.kernels_);
      return *this;
    }
    ~recording() {
      if (graph_ != nullptr) ignore(cudaGraphExecDestroy(graph_));
    }
    std::size_t kernels() const { return kernels_; }
    void run() const {
      context& c = here();
      const auto held = c.capture().enter("replay");
      sinter::detail::refuse_capture("replay", "a captured step cannot hold another; replay it beside this one");
      const use_gpu current(c.gpu());
      check(cudaGraphLaunch(graph_, c.stream()), c.name() + ": starting a captured step");
      c.count_launches(kernels_);
    }

   private:
    cudaGraphExec_t graph_ = nullptr;
    std::size_t kernels_ = 0;
  };

  /// What f put on the device, not run, as a recording.
  template <class F>
  static recording record(const F& f) {
    context& c = here();
    c.capture().begin();
    // Relaxed, because a step may take memory and load kernels on the way; capture_state forbids what must not be.
    const cudaError_t begun = [&] {
      const use_gpu current(c.gpu(), std::nothrow);
      if (current.status() != cudaSuccess) return current.status();
      return cudaStreamBeginCapture(c.stream(), cudaStreamCaptureModeRelaxed);
    }();
    if (begun != cudaSuccess) c.capture().end();
    check(begun, c.name() + ": beginning a capture");
    const std::size_t before = c.launches();
    owned<cudaGraph_t, cudaGraphDestroy> graph;
    const auto end = [&]() noexcept {
      const use_gpu current(c.gpu(), std::nothrow);
      ignore(current.status());
      cudaGraph_t made = nullptr;
      const cudaError_t status = cudaStreamEndCapture(c.stream(), &made);
      graph.reset(made);
      c.capture().end();
      return status;
    };
    const auto kernels = [&] {
      const std::size_t n = c.launches() - before;
      c.count_launches(std::size_t{0} - n);  // they have not run
      return n;
    };
    try {
      f();
    } catch (...) {
      kernels();
      ignore(end());
      throw;
    }
    const std::size_t n = kernels();
    check(end(), c.name() + ": ending a capture");
    const use_gpu current(c.gpu());
    cudaGraphExec_t runnable = nullptr;
    check(cudaGraphInstantiate(&runnable, graph.get(), 0), c.name() + ": preparing a captured step");
    return recording(runnable, n);
  }
};

}  // namespace sinter::cuda_impl

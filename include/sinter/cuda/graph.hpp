// sinter/cuda/graph.hpp: a step recorded once and replayed as a whole: CUDA graphs.
#pragma once

#include <memory>
#include <utility>

#include "sinter/cuda/runtime.hpp"

namespace sinter {

namespace cuda_impl {

/// Counts the runs of a captured step, for its random numbers.
struct count_run_body {
  std::int64_t* runs;
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    if (g.thread() == 0) ++*runs;
  }
};

/// The draws of a step that is being captured: the first one puts the count before itself.
template <device D>
class drawing_again final : public sinter::detail::captured_draws {
 public:
  explicit drawing_again(std::int64_t* runs)
      : runs_(runs), before_(std::exchange(sinter::detail::capturing_draws(), this)) {}
  drawing_again(const drawing_again&) = delete;
  drawing_again& operator=(const drawing_again&) = delete;
  ~drawing_again() { sinter::detail::capturing_draws() = before_; }

  const std::int64_t* run() override {
    if (!std::exchange(counted_, true))
      gpu<D>::launch("counting the runs of a captured step", count_run_body{runs_}, {1, 0});
    return runs_;
  }

 private:
  std::int64_t* runs_;
  captured_draws* before_;
  bool counted_ = false;
};

}  // namespace cuda_impl

/// The work of a step on D; see capture().
template <device D>
  requires is_cuda_v<D>
class cuda_graph {
 public:
  /// Records what f() puts on D, without running it.
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, cuda_graph>)
  explicit cuda_graph(F&& f) : runs_(full<std::int64_t, D>(extents<1>{{1}}, -1)), memory_(std::make_unique<reserve>()) {
    work_ = cuda_impl::gpu<D>::record([&] {
      memory_->open();
      const cuda_impl::drawing_again<D> draws(sinter::detail::access::data(runs_));
      f();
    });
    memory_->close();
  }

  /// Runs the step again, in order with all other work on D, and returns at once.
  void replay() const {
    if (memory_ == nullptr) throw value_error("replay: the step was moved from");
    work_.run();
  }

  /// Kernels in the step.
  std::size_t kernels() const { return memory_ != nullptr ? work_.kernels() : 0; }

 private:
  /// Of the arena: what the step allocates; see caching_arena::open_reserve.
  class reserve {
   public:
    reserve() = default;
    reserve(const reserve&) = delete;
    reserve& operator=(const reserve&) = delete;
    ~reserve() {
      close();
      if (number_ != 0) arena().drop_reserve(number_);
    }
    void open() {
      number_ = arena().open_reserve();
      open_ = true;
    }
    void close() noexcept {
      if (std::exchange(open_, false)) arena().close_reserve();
    }

   private:
    static auto& arena() { return cuda_impl::gpu<D>::memory(); }
    int number_ = 0;
    bool open_ = false;
  };

  tensor<std::int64_t, 1, D> runs_;  ///< before the present one, if the step draws random numbers
  std::unique_ptr<reserve> memory_;
  typename cuda_impl::gpu<D>::recording work_;
};

/// Runs f() `warm_up` times, then records it once more: each replay() runs what f put on D again, as one, on the same
/// memory. As torch.cuda.CUDAGraph, for steps of fixed shapes whose kernels are shorter than what starts them.
///
///     auto step = capture<cuda<0>>([&] { optimizer.zero_grad(); loss = cross_entropy(model(x), y); loss.backward();
///     optimizer.step(); }); for (...) { copy(images, x); copy(labels, y); step.replay(); }    // loss.item() reads the
///     loss of the last one
///
/// - The warm-up runs are real steps, on what the inputs hold then. The recorded one changes nothing on D: values that
/// f assigned are there after the
///   first replay.
/// - What f's statements allocate belongs to the graph for as long as it lives. What f reads or writes besides (inputs,
///   parameters) must live as long and stay where it is: write new inputs into it with copy().
/// - What the host does in f is done when f runs, not when it is replayed: numbers that it computes, such as a learning
/// rate,
///   stay what they were. Adam counts its steps on D, and random numbers are others with each replay: those of replay
///   r, from 0, are draws d + 2^32 r, where d are those that f took from its generators when it was recorded.
/// - What is to change from one replay to the next is written in place: `s += g`. `s = s + g` makes the same new tensor
/// from the
///   same old one each time.
/// - zero_grad() belongs in f: outside of the graph it takes the gradients from their variables, and the next replay
/// writes them where
///   nobody looks. What f computed from random numbers is differentiated in f: outside, backward finds the masks
///   of the latest replay, and only while the graph lives.
///
/// Errors: device_error, which names what f must not do while it is recorded: wait for D (item(), to<cpu>(),
/// synchronize()), copy from the host or between devices, work on another GPU, draw random numbers on the host, or take
/// the first step of an optimizer. Nothing has run on D then, and D goes on; values that f had assigned are undefined.
/// Other threads that put work on D meanwhile, to_async too, get a device_error.
template <device D, class F>
  requires is_cuda_v<D>
cuda_graph<D> capture(F&& f, int warm_up = 1) {
  if (warm_up < 0) throw value_error("capture: the number of warm-up runs is negative");
  for (int i = 0; i < warm_up; ++i) f();
  return cuda_graph<D>(std::forward<F>(f));
}

}  // namespace sinter

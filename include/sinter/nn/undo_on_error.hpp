// sinter/nn/undo_on_error.hpp: several statements that change a model, or where one of them throws, none.
#pragma once

#include <exception>

#include "sinter/core/undo.hpp"

namespace sinter::nn {

/// A block that an exception leaves has changed nothing: neither buffers of modules, such as the running moments of
/// batch norms, nor generators, nor gradients that backward() has gathered. Each call of a module, backward() and
/// step() does so by itself; this is for a whole step of training, which then may be done again:
///
///     nn::undo_on_error step;
///     variable loss = cross_entropy(model(x), y);
///     loss.backward();
///     optimizer.step();
///
/// The step() of an optimizer is final: what was done before it in the block stays, whatever is thrown later. It covers
/// what its thread does, and what data_parallel, tile_parallel and pipeline do for it. Not covered: zero_grad(),
/// tensors that are no buffers, what is written through data(), and a step that is captured for a GPU, in which nothing
/// runs. Without an error it costs a copy of each buffer that is written to and of each gradient that is added to. On a
/// GPU copies are put in line as all work is.
class [[nodiscard]] undo_on_error {
 public:
  [[nodiscard]] undo_on_error() = default;
  undo_on_error(const undo_on_error&) = delete;
  undo_on_error& operator=(const undo_on_error&) = delete;
  ~undo_on_error() {
    if (std::uncaught_exceptions() == exceptions_) changes_.keep();
  }

 private:
  int exceptions_ = std::uncaught_exceptions();
  sinter::detail::undo_scope changes_{true};
};

}  // namespace sinter::nn

// sinter/nn/mark_written.hpp: tells that memory was written to in a way that is not noticed.
#pragma once

#include "sinter/core/unfinished.hpp"
#include "sinter/nn/module.hpp"

namespace sinter {

// Names in messages.
template <class>
struct mark_written_of_what_has_no_memory_of_its_own;
struct pass_a_tensor_a_variable_a_buffer_or_a_module;

/// Tells that the values of x were written to through x(i), data(), iterators, span() or wrapped memory, none of which
/// counts as a write: backward then finds that it needs what was overwritten, and replicas of a module, as of
/// nn::data_parallel, get the new values at their next call. x is a tensor, a variable, an nn::buffer, or a module, for
/// all of whose parameters and buffers it then speaks. What has no value yet is left alone.
///
///     layer.weight.value()(0, 0) = 1.f;
///     mark_written(layer.weight);
template <class X>
  requires(nn::detail::is_stored<X> || nn::is_module<X>)
void mark_written(const X& x) {
  if constexpr (nn::is_module<X>) {
    const auto mark = [](const auto&, const auto& member) { mark_written(member); };
    x.for_each_parameter(mark);
    x.for_each_buffer(mark);
  } else if (x.defined()) {
    detail::note_write(*detail::access::storage_of(nn::detail::stored_value(x)).get());
  }
}
template <class X, class Problem = mark_written_of_what_has_no_memory_of_its_own<X>,
          class Fix = pass_a_tensor_a_variable_a_buffer_or_a_module>
  requires(!nn::detail::is_stored<X> && !nn::is_module<X>)
void mark_written(const X&) = delete;

}  // namespace sinter
